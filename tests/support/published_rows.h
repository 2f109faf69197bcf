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

/// Of kind "schedule" or "optimum"; all of a kind stay in memory.
[[nodiscard]] const std::vector<nlohmann::json>& published_rows(std::string_view kind);
/// A table of bubble rates for each row of tables 5 and 8 of Qi et al., arXiv 2401.10241.
[[nodiscard]] const std::vector<nlohmann::json>& published_tables();

/// What the row says of times and memory, asked of the schedule `name`. Only a search that takes
/// its limit from nowhere else is given the row's.
[[nodiscard]] published::Request request_of(const nlohmann::json& row, std::string_view name);
/// The same of the schedule that the row is about.
[[nodiscard]] published::Request request_of(const nlohmann::json& row);

}  // namespace capo::testing_support
