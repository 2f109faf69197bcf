#include "testing/faults/table.h"

#include "core/base/index.h"
#include "core/frameworks/torch/csv_printer.h"
#include "testing/generators/executable_order.h"
#include "testing/model_text.h"
#include "testing/shown_order.h"

#include <nlohmann/json.hpp>

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

namespace {

// The rows stand below each other, as in a table.
std::string json_of(const Table& table) {
  using Json = nlohmann::ordered_json;
  std::string text = "{\"csv\": [";
  std::istringstream lines(table.text());
  bool first = true;
  for (std::string row; std::getline(lines, row); first = false) {
    text += (first ? "" : ",\n         ") + Json(row).dump();
  }
  text += "]";
  const auto add = [&text](const char* key, const Json& value) {
    text += ",\n \"" + std::string(key) + "\": " + value.dump();
  };
  const TorchDeclarations& declared = table.declarations;
  if (declared.stage_to_rank) add("stage_to_rank", *declared.stage_to_rank);
  if (declared.stages) add("stages", *declared.stages);
  if (declared.microbatches) add("microbatches", *declared.microbatches);
  if (declared.communicates) add("format", *declared.communicates ? "comms" : "compute");
  return text + "}\n";
}

}  // namespace

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
      const auto at = as_index(stage);
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

std::string shown_table(const Table& table, const CheckOptions& declared) {
  const std::string json = json_of(table);
  const std::string model = model_text(declared);
  if (model == model_text(CheckOptions{})) return json;
  return "cat > case.json <<'END'\n" + json + "END\ncat > case.model <<'END'\n" + model +
         "END\ncapo check case.json --model case.model\n";
}

void showValue(const Table& table, std::ostream& out) {
  out << shown_table(table);
}

std::string shown(const Declared& declared) {
  if (declared.table) return shown_table(table_of(declared.schedule), declared.options);
  return shown_order(declared.schedule, declared.options);
}

}  // namespace capo::testing
