// A composite is of a type that is no container, or has no members.

#include "testing/faults/cells.h"
#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenTable wrong_container(const Table& sound, std::size_t choice) {
  const auto place = chosen(single_cells(sound), choice);
  if (!place) return std::nullopt;
  Table table = sound;
  std::string& cell = table.rows[place->row][place->column];
  cell = choice / 7 % 2 == 0 ? "(" + cell + ")B" : "()OVERLAP_F_B";
  return {{table, "S09", place->place()}};
}

}  // namespace capo::testing::faults
