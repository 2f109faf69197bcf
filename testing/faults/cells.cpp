// Faults of the cells of a PyTorch table: a cell is written in a way that PyTorch misreads or
// refuses.
//
//   0F0,1F0   ->   0F,1F0      nameless-microbatch: S07 at the first cell
//
// A table that reads well can have an order at fault; that is order.cpp's subject. The table at the
// end names the faults. Tested by fault_test.cpp and tests/properties/faults_test.cpp.

#include "core/base/index.h"
#include "testing/faults/faults.h"

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace capo::testing {

namespace {

/*DECL*/
struct CellPlace {
  std::size_t row = 0;
  std::size_t column = 0;

  [[nodiscard]] Place place() const {
    return {.rank = static_cast<std::int32_t>(row), .index = column};
  }
};

/// The cells that hold one action: no idle slots, no composites.
[[nodiscard]] std::vector<CellPlace> single_cells(const Table& table);

/// Puts a cell into a row with entries, at a place by choice.
CellPlace insert_cell(Table& table, const std::string& cell, std::size_t row, std::size_t choice);
/*END*/

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

// A cell does not say its microbatch: `0F`. PyTorch reads it without a word.
std::optional<Broken<Table>> nameless_microbatch(const Table& sound, std::size_t choice) {
  const auto place = chosen(single_cells(sound), choice);
  if (!place) return std::nullopt;
  Table table = sound;
  std::string& cell = table.rows[place->row][place->column];
  cell.erase(cell.find_last_not_of("0123456789") + 1);
  return {{table, "S07", place->place()}};
}

// A cell has text behind its action, which PyTorch drops in silence: `0F0.5`, `0F0 1B0`, `0F0x`.
std::optional<Broken<Table>> trailing_text(const Table& sound, std::size_t choice) {
  constexpr std::array kTails{".5", " 1B0", "x", ";"};
  const auto place = chosen(single_cells(sound), choice);
  if (!place) return std::nullopt;
  Table table = sound;
  table.rows[place->row][place->column] += kTails[choice / 7 % kTails.size()];
  return {{table, "S08", place->place()}};
}

// A composite is of a type that is no container, or has no members.
std::optional<Broken<Table>> wrong_container(const Table& sound, std::size_t choice) {
  const auto place = chosen(single_cells(sound), choice);
  if (!place) return std::nullopt;
  Table table = sound;
  std::string& cell = table.rows[place->row][place->column];
  cell = choice / 7 % 2 == 0 ? "(" + cell + ")B" : "()OVERLAP_F_B";
  return {{table, "S09", place->place()}};
}

// An action of a whole stage names a microbatch: `0UNSHARD1`.
std::optional<Broken<Table>> surplus_microbatch(const Table& sound, std::size_t choice) {
  constexpr std::array kWords{"UNSHARD", "RESHARD", "REDUCE_GRAD"};
  Table table = sound;
  const auto& owners = table.declarations.stage_to_rank.value();
  const std::size_t stage = choice % owners.size();
  const std::string cell = std::to_string(stage) + kWords[choice / 7 % kWords.size()] + "1";
  const CellPlace place = insert_cell(table, cell, as_index(owners[stage]), choice);
  return {{table, "S10", place.place()}};
}

// A transfer stands in a compute-only table, or an idle slot in a table with transfers.
std::optional<Broken<Table>> wrong_form(const Table& sound, std::size_t choice) {
  Table table = sound;
  const auto& owners = table.declarations.stage_to_rank.value();
  const std::size_t stage = choice % owners.size();
  const bool transfer = choice / 7 % 2 == 0;
  const std::string cell = transfer ? std::to_string(stage) + "SEND_F0" : "";
  table.declarations.communicates = !transfer;
  const CellPlace place = insert_cell(table, cell, as_index(owners[stage]), choice);
  return {{table, "S11", place.place()}};
}

constexpr std::array kTableFaults{
    TableFault{"nameless-microbatch", {"S07"}, nameless_microbatch},
    TableFault{"trailing-text", {"S08"}, trailing_text},
    TableFault{"wrong-container", {"S09"}, wrong_container},
    TableFault{"surplus-microbatch", {"S10"}, surplus_microbatch},
    TableFault{"wrong-form", {"S11"}, wrong_form},
};

}  // namespace

std::span<const TableFault> table_faults() {
  return kTableFaults;
}

}  // namespace capo::testing
