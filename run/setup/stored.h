// Numbers as an engine stores them, and back to floats. Tested by tests/run/setup/stored_test.cpp.

#pragma once

#include "core/model/model.h"

#include <cstddef>
#include <span>
#include <vector>

namespace capo::run {

/// Rounded to nearest even; Fp8 is never asked for.
[[nodiscard]] std::vector<std::byte> to_stored(std::span<const float> values, DataType type);
[[nodiscard]] std::vector<float> from_stored(std::span<const std::byte> bytes, DataType type);

}  // namespace capo::run
