#include "testing/faults/cells.h"

namespace capo::testing::faults {

std::vector<CellPlace> single_cells(const Table& table) {
  std::vector<CellPlace> found;
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    for (std::size_t c = 0; c < table.rows[r].size(); ++c) {
      const std::string& cell = table.rows[r][c];
      if (!cell.empty() && cell.front() != '(') found.push_back({.row = r, .column = c});
    }
  }
  return found;
}

CellPlace insert_cell(Table& table, const std::string& cell, std::size_t row, std::size_t choice) {
  auto& cells = table.rows[row];
  const std::size_t column = choice % (cells.size() + 1);
  cells.insert(cells.begin() + static_cast<std::ptrdiff_t>(column), cell);
  return {.row = row, .column = column};
}

}  // namespace capo::testing::faults
