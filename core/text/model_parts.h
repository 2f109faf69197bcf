// Readers of the large parts of a model.json: `modules`, the `layers` that name them, `groups` and
// `configuration`.
//
//   "modules": {"attn": {"kind": "layernorm-linear"}, "moe": {"kind": "grouped-mlp"}}
//   "layers": "attn"                            every layer
//   "layers": ["attn", "moe"]                   the layers of every chunk
//   "layers": [["attn"], ["attn", "moe"]]       the chunks of every rank
//   "layers": [[["attn"]], [["moe"]]]           the ranks
//   "groups": [{"name": "ep", "members": [0, 1], "actions": ["dispatch-F", "combine-F"],
//               "streams": {"combine-F": "comm2"}}]
//
// The depth of the names says which of the four forms `layers` has, so all names lie equally deep.
// The parts do not know each other: model_reader.cpp hands the modules to their layers. Tested by
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

/// Indices into `modules` by rank, chunk and layer, as ModuleTable holds them.
[[nodiscard]] Read<std::vector<std::vector<std::vector<std::int32_t>>>> read_module_layers(
    const JsonValue& value, const std::vector<Module>& modules, const Limits& limits);

/// The configuration has no fault.
[[nodiscard]] Read<ModelConfiguration> read_configuration(const JsonValue& value);

[[nodiscard]] Read<std::vector<CollectiveGroup>> read_groups(const JsonValue& value,
                                                             const Limits& limits);

}  // namespace capo
