// The input that a reader hands to the rules: a text, the schedule that it means, and those parts
// of it that a schedule cannot say.
//
// A schedule holds actions; a text can hold things that are none, such as the number `-1.25` or the
// cell `0F0x`. They are kept beside the schedule, with their places, and judged by rules of their
// own.

#pragma once

#include "core/diag/source.h"
#include "core/order/schedule.h"
#include "core/order/te_list.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace capo {

enum class Form : std::uint8_t {
  TeList,        ///< a bare list of numbers, as text or in JSON
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
  std::string torch_reads;  ///< the action that torch reads there
};

struct Input {
  Source source;
  Form form = Form::TeList;
  Schedule schedule;

  /// The raw lists, those of a rank behind those of the rank before; empty in all other forms.
  TeList te_list;
  std::vector<std::uint32_t> te_begins;    ///< where each rank's list begins; empty: there is one
  std::vector<std::uint32_t> odd_entries;  ///< positions in te_list that hold no action
  bool csv_in_json = false;                ///< whether a table's rows stand in a JSON text
  std::vector<CellFault> cell_faults;      ///< empty but in the torch forms
  std::vector<std::string> notes;          ///< how the text was read, where that could surprise
};

/// The entries of one rank's raw list.
[[nodiscard]] std::span<const TeEntry> te_list_of(const Input& input, std::size_t rank);

/// The rank and the index in its list of a position in te_list.
struct TePlace {
  std::size_t rank = 0;
  std::size_t index = 0;
};
[[nodiscard]] TePlace place_in_lists(const Input& input, std::size_t position);

}  // namespace capo
