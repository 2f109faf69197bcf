// All faults, one per file of the same name (stage_order.cpp has backward_order as well), and the
// tables that list them.
//
// A rule of the catalogue whose pass is not Reading has at least one fault here; a test compares.

#pragma once

#include "core/order/schedule.h"
#include "testing/edits/fault.h"
#include "testing/faults/table.h"
#include "testing/generators/communication.h"
#include "testing/generators/sound_declared.h"
#include "testing/generators/te_order.h"

#include <span>

namespace capo::testing {

using ListFault = Fault<TeOrder>;    ///< of a TE list; sound_order() and its kin are subjects
using OrderFault = Fault<Schedule>;  ///< of named microbatches; sound_named_schedule()
using TableFault = Fault<Table>;     ///< of cells; table_of(sound_named_schedule())
using CommunicationFault = Fault<Communication>;  ///< of what ranks exchange; sound_communication()
using ModuleFault = Fault<Declared>;  ///< of declared modules and reductions; sound_declared()
using PlanFault = Fault<Declared>;    ///< of a plan and what it is for; sound_planned()

[[nodiscard]] std::span<const ListFault> list_faults();
[[nodiscard]] std::span<const OrderFault> order_faults();
[[nodiscard]] std::span<const TableFault> table_faults();
[[nodiscard]] std::span<const CommunicationFault> communication_faults();
[[nodiscard]] std::span<const ModuleFault> module_faults();
[[nodiscard]] std::span<const PlanFault> plan_faults();

namespace faults {

using BrokenList = std::optional<Broken<TeOrder>>;
using BrokenOrder = std::optional<Broken<Schedule>>;
using BrokenTable = std::optional<Broken<Table>>;
using BrokenCommunication = std::optional<Broken<Communication>>;
using BrokenModules = std::optional<Broken<Declared>>;
using BrokenPlan = std::optional<Broken<Declared>>;

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
BrokenOrder drop_microbatch(const Schedule&, std::size_t choice);
BrokenOrder double_action(const Schedule&, std::size_t choice);
BrokenOrder other_microbatch(const Schedule&, std::size_t choice);
BrokenOrder microbatch_beyond(const Schedule&, std::size_t choice);
BrokenOrder whole_and_split(const Schedule&, std::size_t choice);
BrokenOrder backward_before_forward(const Schedule&, std::size_t choice);
BrokenOrder weight_before_backward(const Schedule&, std::size_t choice);
BrokenOrder reshard_early(const Schedule&, std::size_t choice);
BrokenOrder exchange_early(const Schedule&, std::size_t choice);
BrokenOrder stage_twice(const Schedule&, std::size_t choice);
BrokenOrder stage_nowhere(const Schedule&, std::size_t choice);
BrokenOrder stage_unknown(const Schedule&, std::size_t choice);
BrokenOrder stage_order(const Schedule&, std::size_t choice);
BrokenOrder backward_order(const Schedule&, std::size_t choice);
BrokenOrder dependency_cycle(const Schedule&, std::size_t choice);

// cells/
BrokenTable nameless_microbatch(const Table&, std::size_t choice);
BrokenTable trailing_text(const Table&, std::size_t choice);
BrokenTable wrong_container(const Table&, std::size_t choice);
BrokenTable surplus_microbatch(const Table&, std::size_t choice);
BrokenTable wrong_form(const Table&, std::size_t choice);

// communication/
BrokenCommunication two_forwards(const Communication&, std::size_t choice);
BrokenCommunication swapped_microbatches(const Communication&, std::size_t choice);
BrokenCommunication overlapping_plain_loop(const Communication&, std::size_t choice);
BrokenCommunication beside_own_forward(const Communication&, std::size_t choice);
BrokenCommunication flush_without_warmup(const Communication&, std::size_t choice);
BrokenCommunication repeat_transfer(const Communication&, std::size_t choice);
BrokenCommunication send_beyond(const Communication&, std::size_t choice);
BrokenCommunication drop_receive(const Communication&, std::size_t choice);
BrokenCommunication drop_send(const Communication&, std::size_t choice);
BrokenCommunication drop_both_ends(const Communication&, std::size_t choice);
BrokenCommunication send_early(const Communication&, std::size_t choice);
BrokenCommunication receive_late(const Communication&, std::size_t choice);
BrokenCommunication swap_receives(const Communication&, std::size_t choice);
BrokenCommunication receive_before_send(const Communication&, std::size_t choice);
BrokenCommunication send_to_itself(const Communication&, std::size_t choice);
BrokenCommunication crossed_collectives(const Communication&, std::size_t choice);
BrokenCommunication racing_collectives(const Communication&, std::size_t choice);

// modules/
BrokenModules wgrad_lost(const Declared&, std::size_t choice);
BrokenModules bias_gradient_lost(const Declared&, std::size_t choice);
BrokenModules gradient_uninitialised(const Declared&, std::size_t choice);
BrokenModules frozen_weight(const Declared&, std::size_t choice);
BrokenModules double_accumulation(const Declared&, std::size_t choice);
BrokenModules shared_weight(const Declared&, std::size_t choice);
BrokenModules main_grad_layout(const Declared&, std::size_t choice);
BrokenModules hooks_not_run(const Declared&, std::size_t choice);
BrokenModules set_order(const Declared&, std::size_t choice);
BrokenModules returned_gradient_alias(const Declared&, std::size_t choice);
BrokenModules sharded_weight(const Declared&, std::size_t choice);
BrokenModules overwriting_each(const Declared&, std::size_t choice);
BrokenModules overwriting_late(const Declared&, std::size_t choice);
BrokenModules reduce_early(const Declared&, std::size_t choice);
BrokenModules reduce_missing(const Declared&, std::size_t choice);
BrokenModules reduce_twice(const Declared&, std::size_t choice);
BrokenModules host_splits(const Declared&, std::size_t choice);
BrokenModules synchronises(const Declared&, std::size_t choice);
BrokenModules unjoined_stream(const Declared&, std::size_t choice);
BrokenModules called_twice(const Declared&, std::size_t choice);
BrokenModules too_many_groups(const Declared&, std::size_t choice);
BrokenModules no_gradient(const Declared&, std::size_t choice);
BrokenModules offloaded_address(const Declared&, std::size_t choice);
BrokenModules half_delayed(const Declared&, std::size_t choice);

// plan/
BrokenPlan delay_weight_past_forward(const Declared&, std::size_t choice);
BrokenPlan delay_weight_past_backward(const Declared&, std::size_t choice);
BrokenPlan delay_reader_of_gradient(const Declared&, std::size_t choice);
BrokenPlan layers_for_chunks(const Declared&, std::size_t choice);
BrokenPlan forget_requires_grad(const Declared&, std::size_t choice);
BrokenPlan swap_outputs(const Declared&, std::size_t choice);
BrokenPlan transpose_output(const Declared&, std::size_t choice);
BrokenPlan shrink_budget(const Declared&, std::size_t choice);
BrokenPlan weight_stream(const Declared&, std::size_t choice);
BrokenPlan grouped_weight_stream(const Declared&, std::size_t choice);
BrokenPlan replay_out_of_order(const Declared&, std::size_t choice);

}  // namespace faults
}  // namespace capo::testing
