// The `groups` of a model.json: which ranks perform which collectives together.
//
//   "groups": [{"name": "ep", "members": [0, 1], "actions": ["dispatch-F", "combine-F"],
//               "streams": {"combine-F": "comm2"}}]
//
// Tested by model_reader_test.cpp.

#pragma once

#include "core/model/model.h"
#include "core/text/json_value.h"
#include "core/text/limits.h"
#include "core/text/refusal.h"

#include <vector>

namespace capo {

[[nodiscard]] Read<std::vector<CollectiveGroup>> read_groups(const JsonValue& value,
                                                             const Limits& limits);

}  // namespace capo
