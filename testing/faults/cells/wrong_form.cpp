// A transfer stands in a compute-only table, or an idle slot in a table with transfers.

#include "testing/faults/cells.h"
#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenTable wrong_form(const Table& sound, std::size_t choice) {
  Table table = sound;
  const auto& owners = table.declarations.stage_to_rank.value();
  const std::size_t stage = choice % owners.size();
  const bool transfer = choice / 7 % 2 == 0;
  const std::string cell = transfer ? std::to_string(stage) + "SEND_F0" : "";
  table.declarations.communicates = !transfer;
  const CellPlace place = insert_cell(table, cell, static_cast<std::size_t>(owners[stage]), choice);
  return {{table, "S11", place.place()}};
}

}  // namespace capo::testing::faults
