// Reads a JSON text as a schedule; docs/schema/schedule.schema.json is the published schema.
//
//   {"order": [1, -1], "num_layers_per_chunk": [1], "need_wgrad": [false]}           a TE list
//   {"order": [[1, -1], [1, -1]]}                                                    one a rank
//   {"csv": ["0F0,0B0"], "stage_to_rank": [0], "microbatches": 1}                   a PyTorch table
//   {"microbatches": 1, "placement": "loop", "ranks": [{"order": ["F1.0", "B1.0"]}]} an order file
//
// Which of the three it is follows from the key that holds the order. Python's floats that JSON has
// no literal for are strings: "NaN", "Infinity", "-Infinity". Tested by json_reader_test.cpp.

#pragma once

#include "core/frameworks/te/from_te_list.h"
#include "core/frameworks/torch/csv_reader.h"
#include "core/order/input.h"
#include "core/text/json_value.h"
#include "core/text/limits.h"
#include "core/text/refusal.h"

#include <span>
#include <string_view>

namespace capo {

/// Whether keys that are no part of a schedule are a mistake, or allowed as in a line of a batch.
enum class ExtraKeys { Refused, Allowed };

/// The keys of the text's object that are part of its schedule; none if it holds no order.
[[nodiscard]] std::span<const std::string_view> schedule_keys(const JsonDocument& document);

/// Fills an Input except for its source. Declarations in the text win over those handed in.
[[nodiscard]] Read<Input> read_json_schedule(const JsonDocument& document, const Limits& limits,
                                             ExtraKeys extra_keys, TeDeclarations te = {},
                                             TorchDeclarations torch = {});

}  // namespace capo
