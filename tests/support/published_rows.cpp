#include "tests/support/published_rows.h"
#include "tests/support/data.h"

#include <array>
#include <string>

namespace capo::testing_support {

namespace {

using nlohmann::json;

const json& reference() {
  static const json data = read_data("zb_reference.json");
  return data;
}

std::vector<json> rows_of(std::string_view kind) {
  std::vector<json> rows;
  for (const json& row : reference().at("rows")) {
    if (row.at("kind") == kind) rows.push_back(row);
  }
  return rows;
}

// A number for all ranks or a list with one for each.
double on_rank(const json& times, std::size_t rank) {
  return times.is_array() ? times.at(rank).get<double>() : times.get<double>();
}

// A microbatch passes only one chunk of each rank if two pipelines run in opposite directions.
schedules::Costs chunk_costs(const json& row, std::size_t rank) {
  const bool passes_one = row.value("placement", "") == "bidirectional";
  const double chunks = passes_one ? 1 : row.at("v").get<double>();
  return {.forward = on_rank(row.at("F"), rank) / chunks,
          .backward = on_rank(row.at("B"), rank) / chunks,
          .weight = on_rank(row.at("W"), rank) / chunks,
          .transfer = row.at("comm").get<double>()};
}

}  // namespace

const std::vector<json>& published_rows(std::string_view kind) {
  static const std::array both{rows_of("schedule"), rows_of("optimum")};
  return both[kind == "schedule" ? 0 : 1];
}

const std::vector<json>& published_tables() {
  static const auto tables = reference().at("published_tables").get<std::vector<json>>();
  return tables;
}

schedules::Request request_of(const json& row, std::string_view name) {
  const json& memory = row.at("mem_model");
  schedules::Request request{
      .name = std::string(name),
      .ranks = row.at("p"),
      .microbatches = row.at("m"),
      .costs = chunk_costs(row, 0),
      .memory = schedules::Memory{
          .forward = memory.at("F"), .backward = memory.at("B"), .weight = memory.at("W")}};
  for (std::size_t rank = 0; row.at("F").is_array() && rank < row.at("F").size(); ++rank) {
    request.rank_costs.push_back(chunk_costs(row, rank));
  }
  if (name == "zb" || name == "zbv" || name == "v-adaptive") {
    request.memory_limit = row.at("mem_limit").get<double>();
  }
  return request;
}

schedules::Request request_of(const json& row) {
  return request_of(row, row.at("schedule").get<std::string>());
}

}  // namespace capo::testing_support
