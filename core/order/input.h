// What a reader hands to the rules: the text, the schedule it means, and what the schedule cannot
// say.
//
// A schedule holds actions; a text can hold things that are none, such as the number `-1.25` or the
// cell `0F0x`. They are kept beside the schedule, with their places, and judged by rules of their
// own.

#pragma once

#include "core/diag/source.h"
#include "core/order/schedule.h"
#include "core/order/te_list.h"

#include <cstdint>
#include <string>
#include <vector>

namespace capo {

enum class Form : std::uint8_t {
  TeList,        ///< TransformerEngine's list of numbers, as text or in JSON
  OrderFile,     ///< capo's own text
  TorchCompute,  ///< PyTorch's CSV: F, I, W, B and composites, idle slots allowed
  TorchComms,    ///< PyTorch's CSV with transfers; idle slots refused
  Json,          ///< capo's own JSON
};

/// A cell of a PyTorch table that is readable and yet not what it should be.
struct CellFault {
  enum class Kind : std::uint8_t {
    DroppedText,        ///< torch reads the beginning of the cell and drops the rest
    WrongContainer,     ///< (a;b)X with an X other than OVERLAP_F_B
    EmptyComposite,     ///< ()OVERLAP_F_B
    SurplusMicrobatch,  ///< a microbatch on an action of a whole stage: 5REDUCE_GRAD7
    IdleSlot,           ///< an empty cell in a table with transfers
    TransferInCompute,  ///< a transfer in a compute-only table
  };

  Kind kind = Kind::DroppedText;
  std::int32_t rank = 0;
  std::uint32_t cell = 0;  ///< position in the row, from 0
  Span span;
  std::string torch_reads;  ///< what torch makes of it
};

struct Input {
  Source source;
  Form form = Form::TeList;
  Schedule schedule;

  TeList te_list;                          ///< the raw list; only of Form::TeList
  std::vector<std::uint32_t> odd_entries;  ///< entries of te_list that are no action
  bool csv_in_json = false;                ///< rows of a table that stand in a JSON text
  std::vector<CellFault> cell_faults;      ///< only of the torch forms
};

}  // namespace capo
