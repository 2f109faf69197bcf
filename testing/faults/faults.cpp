#include <capo/testing/faults/faults.h>

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
    OrderFault{"double-action", {"S20"}, faults::double_action},
    OrderFault{"other-microbatch", {"S21"}, faults::other_microbatch},
    OrderFault{"microbatch-beyond", {"S19"}, faults::microbatch_beyond},
    OrderFault{"whole-and-split", {"S22"}, faults::whole_and_split},
    OrderFault{"backward-before-forward", {"D01"}, faults::backward_before_forward},
    OrderFault{"weight-before-backward", {"D02"}, faults::weight_before_backward},
    OrderFault{"stage-twice", {"P01"}, faults::stage_twice},
    OrderFault{"stage-nowhere", {"P02"}, faults::stage_nowhere},
    OrderFault{"stage-unknown", {"P03"}, faults::stage_unknown},
};

constexpr std::array kTableFaults{
    TableFault{"nameless-microbatch", {"S07"}, faults::nameless_microbatch},
    TableFault{"trailing-text", {"S08"}, faults::trailing_text},
    TableFault{"wrong-container", {"S09"}, faults::wrong_container},
    TableFault{"surplus-microbatch", {"S10"}, faults::surplus_microbatch},
    TableFault{"wrong-form", {"S11"}, faults::wrong_form},
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

}  // namespace capo::testing
