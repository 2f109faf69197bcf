// The golden data under tests/data, as JSON.

#pragma once

#include "core/order/layers.h"
#include "core/order/te_list.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace capo::testing_support {

/// tests/data/<name>.
[[nodiscard]] std::string data_path(const std::string& name);
[[nodiscard]] nlohmann::json read_data(const std::string& name);

/// An order in JSON as TE holds it: "NaN" and "-Infinity" are strings, 1.0 is a float.
[[nodiscard]] TeList te_list_of(const nlohmann::json& order);
/// num_layers_per_chunk: a list, an int or null.
[[nodiscard]] Layers layers_of(const nlohmann::json& layers);

}  // namespace capo::testing_support
