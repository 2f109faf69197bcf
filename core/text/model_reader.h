// read_model() reads a model.json as a Model; docs/model-json.md explains it, and
// docs/schema/model.schema.json is its schema.
//
//   {"schema": 1, "topology": "loop", "modules": {"mlp": {"kind": "grouped-mlp"}}, "layers": "mlp"}
//
// Every member may be left out, and none is guessed. Rules beyond the schema hold too: stages are
// distinct and without gaps, a layer is a module that there is, a single module without `layers` is
// every layer and several have some, the members of a group differ, and no rank performs an action
// in two groups. Tested by model_reader_test.cpp and model_refusals_test.cpp.

#pragma once

#include "core/model/model.h"
#include "core/text/limits.h"
#include "core/text/refusal.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace capo {

[[nodiscard]] Read<Model> read_model(std::string_view text, const Limits& limits);

/// Reads a topology alone, {"schema": 1, "stages": [[0, 3], [1, 2]]}, as the stages of each rank's
/// chunks.
[[nodiscard]] Read<std::vector<std::vector<std::int32_t>>> read_topology(std::string_view text,
                                                                         const Limits& limits);

}  // namespace capo
