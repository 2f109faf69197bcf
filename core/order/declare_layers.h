// The layers that a model file names for each chunk, declared of a schedule that may say itself how
// many each has.
//
// An order that says nothing has the layers that are named, since a chunk has no others; one that
// says how many is not overruled: the two must agree, or they are not about the same model. One
// name speaks for any number of layers. Tested by declare_layers_test.cpp.

#pragma once

#include "core/order/schedule.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace capo {

/// `named`: by rank, chunk and layer, where a level with one entry speaks for all of its kind. The
/// reason why the two do not fit, and the schedule unchanged; nothing if they do.
[[nodiscard]] std::optional<std::string> declare_layers(
    Schedule& schedule, const std::vector<std::vector<std::vector<std::int32_t>>>& named);

}  // namespace capo
