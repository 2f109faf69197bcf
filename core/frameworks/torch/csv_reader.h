// A PyTorch schedule table to a schedule.
//
//   0F0,0F1,,0B0            row i is rank i; an empty cell is an idle slot
//   1F0,1B0,(1F1;1B1)OVERLAP_F_B
//
// A cell is read twice: as torch reads it, and strictly. torch takes the beginning of a cell that
// fits its pattern and drops the rest (`0F1.5` is `0F1`), so where the two differ the cell is a
// fault that a rule reports. A cell that torch refuses is malformed.
//
// The file says neither microbatches nor stages; they come from the declarations. Without a
// stage-to-rank list a rank holds the stages that stand in its row, in ascending order.
// Fields may be quoted as csv.reader takes them. Tested by csv_reader_test.cpp.

#pragma once

#include "core/diag/span.h"
#include "core/frameworks/torch/version.h"
#include "core/order/input.h"
#include "core/text/limits.h"
#include "core/text/refusal.h"

#include <optional>
#include <string_view>
#include <vector>

namespace capo {

/// Declarations of a user about a table.
struct TorchDeclarations {
  std::optional<std::int32_t> microbatches;
  std::optional<std::int32_t> stages;
  std::optional<std::vector<std::int32_t>> stage_to_rank;  ///< rank of stage i
  std::optional<bool> communicates;                 ///< nullopt: it does if a transfer occurs
  const torch::Version* version = &torch::kNewest;  ///< never null
};

struct TorchReading {
  Schedule schedule;
  bool communicates = false;
  std::vector<CellFault> faults;
};

/// One row of cells with the place of each in the input.
struct TorchRow {
  struct Cell {
    std::string text;
    Span span;
  };
  std::vector<Cell> cells;
};

/// The rows of a CSV text; a blank line is an empty row, as csv.reader has it.
[[nodiscard]] Read<std::vector<TorchRow>> split_torch_csv(std::string_view text,
                                                          const Limits& limits);

/// The schedule that the rows mean; the rows may also come out of a JSON text.
[[nodiscard]] Read<TorchReading> read_torch_rows(const std::vector<TorchRow>& rows,
                                                 const TorchDeclarations& declarations,
                                                 const Limits& limits);

}  // namespace capo
