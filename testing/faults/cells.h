// What the faults of a table share: choosing a cell, and saying where it is.

#pragma once

#include "testing/edits/fault.h"
#include "testing/faults/table.h"

#include <cstddef>
#include <string>
#include <vector>

namespace capo::testing::faults {

struct CellPlace {
  std::size_t row = 0;
  std::size_t column = 0;

  [[nodiscard]] FaultPlace place() const {
    return {.rank = static_cast<std::int32_t>(row), .index = column};
  }
};

/// The cells that hold one action: no idle slots, no composites.
[[nodiscard]] std::vector<CellPlace> single_cells(const Table& table);

/// Puts a cell into a row with entries, at a place by choice.
CellPlace insert_cell(Table& table, const std::string& cell, std::size_t row, std::size_t choice);

}  // namespace capo::testing::faults
