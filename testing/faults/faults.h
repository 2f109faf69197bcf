// All faults: a table for each kind of subject, in the file of its name beside this one.
//
//   for (const ListFault& fault : list_faults()) {
//     if (const auto broken = fault.apply(*sound_order(), choice)) ...
//   }
//
// Each rule of the catalogue whose pass is not Reading has at least one fault here; a test
// compares. The order of a table is part of what a printed seed means, so a new fault goes to its
// end. Tested by fault_test.cpp; that each fault is reported is a property in tests/properties.

#pragma once

#include "core/order/schedule.h"
#include "testing/edits/fault.h"
#include "testing/faults/table.h"
#include "testing/generators/communication.h"
#include "testing/generators/sound_declared.h"
#include "testing/generators/te_order.h"

#include <span>

namespace capo::testing {

using ListFault = Fault<TeOrder>;                 ///< for sound_order() and its kin
using OrderFault = Fault<Schedule>;               ///< for sound_named_schedule()
using TableFault = Fault<Table>;                  ///< for table_of(sound_named_schedule())
using CommunicationFault = Fault<Communication>;  ///< for sound_communication()
using ModuleFault = Fault<Declared>;              ///< for sound_declared()
using PlanFault = Fault<Declared>;                ///< for sound_planned()

[[nodiscard]] std::span<const ListFault> list_faults();
[[nodiscard]] std::span<const OrderFault> order_faults();
[[nodiscard]] std::span<const TableFault> table_faults();
[[nodiscard]] std::span<const CommunicationFault> communication_faults();
[[nodiscard]] std::span<const ModuleFault> module_faults();
[[nodiscard]] std::span<const PlanFault> plan_faults();

}  // namespace capo::testing
