// All faults, one per file of the same name, and the tables that list them.
//
// A rule of the catalogue whose pass is not Reading has at least one fault here; a test compares.

#pragma once

#include <capo/core/order/schedule.h>
#include <capo/testing/faults/fault.h>
#include <capo/testing/faults/table.h>
#include <capo/testing/generators/te_order.h>

#include <span>

namespace capo::testing {

using ListFault = Fault<TeOrder>;    ///< of a TE list; sound_order() and its kin are subjects
using OrderFault = Fault<Schedule>;  ///< of named microbatches; sound_named_schedule()
using TableFault = Fault<Table>;     ///< of cells; table_of(sound_named_schedule())

[[nodiscard]] std::span<const ListFault> list_faults();
[[nodiscard]] std::span<const OrderFault> order_faults();
[[nodiscard]] std::span<const TableFault> table_faults();

namespace faults {

using BrokenList = std::optional<Broken<TeOrder>>;
using BrokenOrder = std::optional<Broken<Schedule>>;
using BrokenTable = std::optional<Broken<Table>>;

// list/
BrokenList not_finite(const TeOrder&, std::size_t choice);
BrokenList other_fraction(const TeOrder&, std::size_t choice);
BrokenList float_chunk(const TeOrder&, std::size_t choice);
BrokenList chunk_zero(const TeOrder&, std::size_t choice);
BrokenList no_forward(const TeOrder&, std::size_t choice);
BrokenList unknown_chunk(const TeOrder&, std::size_t choice);
BrokenList absent_chunk(const TeOrder&, std::size_t choice);
BrokenList drop_entry(const TeOrder&, std::size_t choice);
BrokenList double_entry(const TeOrder&, std::size_t choice);
BrokenList other_chunk(const TeOrder&, std::size_t choice);
BrokenList undeclared_weight(const TeOrder&, std::size_t choice);
BrokenList layers_misfit(const TeOrder&, std::size_t choice);
BrokenList backward_first(const TeOrder&, std::size_t choice);
BrokenList weight_first(const TeOrder&, std::size_t choice);

// order/
BrokenOrder drop_action(const Schedule&, std::size_t choice);
BrokenOrder double_action(const Schedule&, std::size_t choice);
BrokenOrder other_microbatch(const Schedule&, std::size_t choice);
BrokenOrder microbatch_beyond(const Schedule&, std::size_t choice);
BrokenOrder whole_and_split(const Schedule&, std::size_t choice);
BrokenOrder backward_before_forward(const Schedule&, std::size_t choice);
BrokenOrder weight_before_backward(const Schedule&, std::size_t choice);
BrokenOrder stage_twice(const Schedule&, std::size_t choice);
BrokenOrder stage_nowhere(const Schedule&, std::size_t choice);
BrokenOrder stage_unknown(const Schedule&, std::size_t choice);

// cells/
BrokenTable nameless_microbatch(const Table&, std::size_t choice);
BrokenTable trailing_text(const Table&, std::size_t choice);
BrokenTable wrong_container(const Table&, std::size_t choice);
BrokenTable surplus_microbatch(const Table&, std::size_t choice);
BrokenTable wrong_form(const Table&, std::size_t choice);

}  // namespace faults
}  // namespace capo::testing
