#include <capo/testing/faults/table.h>

#include <capo/core/text/torch_csv_printer.h>
#include <capo/testing/generators/executable_order.h>

#include <ostream>
#include <sstream>
#include <utility>

namespace capo::testing {

std::string Table::text() const {
  std::string out;
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) out += (c > 0 ? "," : "") + row[c];
    out += '\n';
  }
  return out;
}

Table table_of(Schedule schedule) {
  if (schedule.topology == Topology::Independent) {
    schedule.topology = Topology::Chain;
    place_stages(schedule);
    schedule = in_executable_order(std::move(schedule));
  }
  Table table;
  table.declarations.microbatches = schedule.microbatches;
  table.declarations.communicates = false;
  auto& owners = table.declarations.stage_to_rank.emplace();
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    RankOrder& rank = schedule.ranks[r];
    rank.layers = {};
    for (const std::int32_t stage : rank.stages) {
      const auto at = static_cast<std::size_t>(stage);
      if (owners.size() <= at) owners.resize(at + 1);
      owners[at] = static_cast<std::int32_t>(r);
    }
  }
  std::istringstream lines(print_torch_csv(schedule).value());
  for (std::string line; std::getline(lines, line);) {
    auto& row = table.rows.emplace_back();
    std::istringstream cells(line + ",");
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
  }
  return table;
}

void showValue(const Table& table, std::ostream& out) {
  out << table.text();
}

}  // namespace capo::testing
