// The `modules` of a model.json, and the `layers` that name them.
//
//   "modules": {"attn": {"kind": "layernorm-linear"}, "moe": {"kind": "grouped-mlp"}}
//   "layers": "attn"                            every layer
//   "layers": ["attn", "moe"]                   the layers of every chunk
//   "layers": [["attn"], ["attn", "moe"]]       the chunks of every rank
//   "layers": [[["attn"]], [["moe"]]]           the ranks
//
// How deep the names lie says which of the four it is, so all lie equally deep. Tested by
// model_reader_test.cpp.

#pragma once

#include "core/model/model.h"
#include "core/text/json_value.h"
#include "core/text/limits.h"
#include "core/text/refusal.h"

#include <cstdint>
#include <vector>

namespace capo {

[[nodiscard]] Read<std::vector<Module>> read_modules(const JsonValue& value, const Limits& limits);

/// As Model::layers holds them.
[[nodiscard]] Read<std::vector<std::vector<std::vector<std::int32_t>>>> read_module_layers(
    const JsonValue& value, const std::vector<Module>& modules, const Limits& limits);

}  // namespace capo
