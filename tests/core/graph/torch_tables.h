// PyTorch's tables as the tests of lowering need them: read from JSON rows, compared cell by cell.

#pragma once

#include "core/frameworks/torch/csv_printer.h"
#include "core/input/load.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace capo::testing_support {

/// The table that these rows are, one CSV text a rank, with its ranks declared as the data has
/// them.
inline Input torch_table(const nlohmann::json& rows, const nlohmann::json& stage_to_rank,
                         std::optional<std::int32_t> microbatches) {
  std::string text;
  for (const auto& row : rows) text += row.get<std::string>() + "\n";
  auto input = load(Source{.name = "table.csv", .text = std::move(text)},
                    {.form = TextForm::TorchCsv,
                     .torch = {.microbatches = microbatches,
                               .stage_to_rank = stage_to_rank.get<std::vector<std::int32_t>>()}});
  if (!input) throw std::invalid_argument(input.error().refusal.finding.message);
  return std::move(*input);
}

/// The schedule without its actions of these kinds.
inline Schedule without(Schedule schedule, const std::vector<Kind>& kinds) {
  for (RankOrder& rank : schedule.ranks) {
    std::erase_if(rank.order, [&](const Entry& entry) {
      return std::find(kinds.begin(), kinds.end(), entry.kind) != kinds.end();
    });
  }
  return schedule;
}

/// Rank by rank, the cells of a table.
using Cells = std::vector<std::vector<std::string>>;

inline std::vector<std::string> cells_of(const std::string& row) {
  std::vector<std::string> cells;
  std::istringstream text(row);
  for (std::string cell; std::getline(text, cell, ',');) cells.push_back(cell);
  return cells;
}

inline Cells cells_of(const nlohmann::json& rows) {
  Cells cells;
  for (const auto& row : rows) cells.push_back(cells_of(row.get<std::string>()));
  return cells;
}

inline Cells cells_of(const Schedule& schedule) {
  Cells cells;
  std::istringstream text(print_torch_csv(schedule).value());
  for (std::string row; std::getline(text, row);) cells.push_back(cells_of(row));
  return cells;
}

}  // namespace capo::testing_support
