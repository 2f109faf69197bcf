#include "testing/faults/faults.h"

#include <array>

namespace capo::testing {

namespace {

constexpr std::array kListFaults{
    ListFault{"not-finite", {"S01"}, faults::not_finite},
    ListFault{"other-fraction", {"S02", "S05"}, faults::other_fraction},
    ListFault{"float-chunk", {"S03"}, faults::float_chunk},
    ListFault{"chunk-zero", {"S04"}, faults::chunk_zero},
    ListFault{"no-forward", {"S06"}, faults::no_forward},
    ListFault{"unknown-chunk", {"S12"}, faults::unknown_chunk},
    ListFault{"absent-chunk", {"S13"}, faults::absent_chunk},
    ListFault{"drop-entry", {"S06", "S14", "S15", "S16"}, faults::drop_entry},
    ListFault{"double-entry", {"S14", "S15", "S16"}, faults::double_entry},
    ListFault{"other-chunk", {"S14", "S15", "S16", "S17"}, faults::other_chunk},
    ListFault{"undeclared-weight", {"S17"}, faults::undeclared_weight},
    ListFault{"layers-misfit", {"S18"}, faults::layers_misfit},
    ListFault{"backward-first", {"S23"}, faults::backward_first},
    ListFault{"weight-first", {"S24"}, faults::weight_first},
};

constexpr std::array kOrderFaults{
    OrderFault{"drop-action", {"S06", "S21"}, faults::drop_action},
    OrderFault{"drop-microbatch", {"S21"}, faults::drop_microbatch},
    OrderFault{"double-action", {"S20"}, faults::double_action},
    OrderFault{"other-microbatch", {"S21"}, faults::other_microbatch},
    OrderFault{"microbatch-beyond", {"S19"}, faults::microbatch_beyond},
    OrderFault{"whole-and-split", {"S22"}, faults::whole_and_split},
    OrderFault{"backward-before-forward", {"D01"}, faults::backward_before_forward},
    OrderFault{"weight-before-backward", {"D02"}, faults::weight_before_backward},
    OrderFault{"reshard-early", {"D05"}, faults::reshard_early},
    OrderFault{"exchange-early", {"D06"}, faults::exchange_early},
    OrderFault{"stage-twice", {"P01"}, faults::stage_twice},
    OrderFault{"stage-nowhere", {"P02"}, faults::stage_nowhere},
    OrderFault{"stage-unknown", {"P03"}, faults::stage_unknown},
    OrderFault{"stage-order", {"D03"}, faults::stage_order},
    OrderFault{"backward-order", {"D03"}, faults::backward_order},
    OrderFault{"dependency-cycle", {"D04"}, faults::dependency_cycle},
};

constexpr std::array kTableFaults{
    TableFault{"nameless-microbatch", {"S07"}, faults::nameless_microbatch},
    TableFault{"trailing-text", {"S08"}, faults::trailing_text},
    TableFault{"wrong-container", {"S09"}, faults::wrong_container},
    TableFault{"surplus-microbatch", {"S10"}, faults::surplus_microbatch},
    TableFault{"wrong-form", {"S11"}, faults::wrong_form},
};

constexpr std::array kCommunicationFaults{
    CommunicationFault{"two-forwards", {"R01"}, faults::two_forwards},
    CommunicationFault{"swapped-microbatches", {"R01"}, faults::swapped_microbatches},
    CommunicationFault{"overlapping-plain-loop", {"R01"}, faults::overlapping_plain_loop},
    CommunicationFault{"beside-own-forward", {"R01"}, faults::beside_own_forward},
    CommunicationFault{"flush-without-warmup", {"R02"}, faults::flush_without_warmup},
    CommunicationFault{"repeat-transfer", {"T01"}, faults::repeat_transfer},
    CommunicationFault{"send-beyond", {"T02"}, faults::send_beyond},
    CommunicationFault{"drop-receive", {"T03"}, faults::drop_receive},
    CommunicationFault{"drop-send", {"T04"}, faults::drop_send},
    CommunicationFault{"drop-both-ends", {"T05"}, faults::drop_both_ends},
    CommunicationFault{"send-early", {"T06"}, faults::send_early},
    CommunicationFault{"receive-late", {"T07"}, faults::receive_late},
    CommunicationFault{"swap-receives", {"T08"}, faults::swap_receives},
    CommunicationFault{"receive-before-send", {"T09"}, faults::receive_before_send},
    CommunicationFault{"send-to-itself", {"T02"}, faults::send_to_itself},
    CommunicationFault{"crossed-collectives", {"T10"}, faults::crossed_collectives},
    CommunicationFault{"racing-collectives", {"T10"}, faults::racing_collectives},
};

constexpr std::array kModuleFaults{
    ModuleFault{"wgrad-lost", {"G01"}, faults::wgrad_lost},
    ModuleFault{"bias-gradient-lost", {"G02"}, faults::bias_gradient_lost},
    ModuleFault{"gradient-uninitialised", {"G03"}, faults::gradient_uninitialised},
    ModuleFault{"frozen-weight", {"G04"}, faults::frozen_weight},
    ModuleFault{"double-accumulation", {"G05"}, faults::double_accumulation},
    ModuleFault{"shared-weight", {"G06"}, faults::shared_weight},
    ModuleFault{"main-grad-layout", {"G07"}, faults::main_grad_layout},
    ModuleFault{"hooks-not-run", {"G08"}, faults::hooks_not_run},
    ModuleFault{"set-order", {"G09"}, faults::set_order},
    ModuleFault{"returned-gradient-alias", {"G10"}, faults::returned_gradient_alias},
    ModuleFault{"sharded-weight", {"G11"}, faults::sharded_weight},
    ModuleFault{"overwriting-each", {"G12"}, faults::overwriting_each},
    ModuleFault{"overwriting-late", {"G12"}, faults::overwriting_late},
    ModuleFault{"reduce-early", {"G13"}, faults::reduce_early},
    ModuleFault{"reduce-missing", {"G14"}, faults::reduce_missing},
    ModuleFault{"reduce-twice", {"G15"}, faults::reduce_twice},
    ModuleFault{"host-splits", {"C01"}, faults::host_splits},
    ModuleFault{"synchronises", {"C02"}, faults::synchronises},
    ModuleFault{"unjoined-stream", {"C03"}, faults::unjoined_stream},
    ModuleFault{"called-twice", {"C04"}, faults::called_twice},
    ModuleFault{"too-many-groups", {"C05"}, faults::too_many_groups},
    ModuleFault{"no-gradient", {"C06"}, faults::no_gradient},
    ModuleFault{"offloaded-address", {"C07"}, faults::offloaded_address},
    ModuleFault{"half-delayed", {"C08"}, faults::half_delayed},
};

constexpr std::array kPlanFaults{
    PlanFault{"delay-weight-past-forward", {"B01"}, faults::delay_weight_past_forward},
    PlanFault{"delay-weight-past-backward", {"B02"}, faults::delay_weight_past_backward},
    PlanFault{"delay-reader-of-gradient", {"B03"}, faults::delay_reader_of_gradient},
    PlanFault{"layers-for-chunks", {"B04"}, faults::layers_for_chunks},
    PlanFault{"forget-requires-grad", {"B05"}, faults::forget_requires_grad},
    PlanFault{"swap-outputs", {"B06"}, faults::swap_outputs},
    PlanFault{"transpose-output", {"B07"}, faults::transpose_output},
    PlanFault{"shrink-budget", {"B08"}, faults::shrink_budget},
    PlanFault{"weight-stream", {"E01"}, faults::weight_stream},
    PlanFault{"grouped-weight-stream", {"E02"}, faults::grouped_weight_stream},
    PlanFault{"replay-out-of-order", {"Y01"}, faults::replay_out_of_order},
};

}  // namespace

std::span<const ListFault> list_faults() {
  return kListFaults;
}

std::span<const OrderFault> order_faults() {
  return kOrderFaults;
}

std::span<const TableFault> table_faults() {
  return kTableFaults;
}

std::span<const CommunicationFault> communication_faults() {
  return kCommunicationFaults;
}

std::span<const ModuleFault> module_faults() {
  return kModuleFaults;
}

std::span<const PlanFault> plan_faults() {
  return kPlanFaults;
}

}  // namespace capo::testing
