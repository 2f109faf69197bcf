// An action of a whole stage names a microbatch: `0UNSHARD1`.

#include "testing/faults/cells.h"
#include "testing/faults/faults.h"

#include <array>

namespace capo::testing::faults {

BrokenTable surplus_microbatch(const Table& sound, std::size_t choice) {
  constexpr std::array kWords{"UNSHARD", "RESHARD", "REDUCE_GRAD"};
  Table table = sound;
  const auto& owners = table.declarations.stage_to_rank.value();
  const std::size_t stage = choice % owners.size();
  const std::string cell = std::to_string(stage) + kWords[choice / 7 % kWords.size()] + "1";
  const CellPlace place = insert_cell(table, cell, static_cast<std::size_t>(owners[stage]), choice);
  return {{table, "S10", place.place()}};
}

}  // namespace capo::testing::faults
