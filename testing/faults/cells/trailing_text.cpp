// A cell goes on behind its action, which PyTorch drops in silence: `0F0.5`, `0F0 1B0`, `0F0x`.

#include "testing/faults/cells.h"
#include "testing/faults/faults.h"

#include <array>

namespace capo::testing::faults {

BrokenTable trailing_text(const Table& sound, std::size_t choice) {
  constexpr std::array kTails{".5", " 1B0", "x", ";"};
  const auto place = chosen(single_cells(sound), choice);
  if (!place) return std::nullopt;
  Table table = sound;
  table.rows[place->row][place->column] += kTails[choice / 7 % kTails.size()];
  return {{table, "S08", place->place()}};
}

}  // namespace capo::testing::faults
