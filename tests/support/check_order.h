// `capo check --order` in the real program, for tests of what it says.

#pragma once

#include "tests/support/run_capo.h"

#include <nlohmann/json_fwd.hpp>

#include <set>
#include <string>
#include <vector>

namespace capo::testing_support {

[[nodiscard]] Outcome check_order(const std::string& order,
                                  const std::vector<std::string>& flags = {});
/// Checks the order and returns the JSON report.
[[nodiscard]] nlohmann::json report_of(const std::string& order,
                                       std::vector<std::string> flags = {});

/// The names of an object's fields.
[[nodiscard]] std::set<std::string> keys_of(const nlohmann::json& object);

}  // namespace capo::testing_support
