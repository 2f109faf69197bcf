// A cell does not say its microbatch: `0F`. PyTorch reads it without a word.

#include "testing/faults/cells.h"
#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenTable nameless_microbatch(const Table& sound, std::size_t choice) {
  const auto place = chosen(single_cells(sound), choice);
  if (!place) return std::nullopt;
  Table table = sound;
  std::string& cell = table.rows[place->row][place->column];
  cell.erase(cell.find_last_not_of("0123456789") + 1);
  return {{table, "S07", place->place()}};
}

}  // namespace capo::testing::faults
