// The rows of tests/data/zb_reference.json: what published schedules are and take, as their
// authors' programs print them and an independent replay times them; and proven optima.
//
// Times in a row are of a rank: of all its chunks together. What this hands out is of one chunk.

#pragma once

#include "schedules/catalogue.h"

#include <nlohmann/json.hpp>

#include <string_view>
#include <vector>

namespace capo::testing_support {

/// The rows of kind "schedule" or "optimum"; all of a kind stay in memory.
[[nodiscard]] const std::vector<nlohmann::json>& published_rows(std::string_view kind);
/// A table of bubble rates for each row of tables 5 and 8 of Qi et al., arXiv 2401.10241.
[[nodiscard]] const std::vector<nlohmann::json>& published_tables();

/// A request for the schedule `name` with the row's times and memory. Only a search that has no
/// other limit is given the row's.
[[nodiscard]] schedules::Request request_of(const nlohmann::json& row, std::string_view name);
/// A request for the schedule that the row is about.
[[nodiscard]] schedules::Request request_of(const nlohmann::json& row);

}  // namespace capo::testing_support
