// The ranks that reduce magnitudes of delayed scaling together, held against an input. What rule
// T15 makes of them is in quantization.cpp. Tested by quantization_test.cpp.

#pragma once

#include "core/model/environment.h"

#include <cstddef>
#include <optional>
#include <string>

namespace capo {

/// The reason why the group's members are not of an input of so many ranks, one at least; nullopt
/// if they are.
[[nodiscard]] std::optional<std::string> misfit_of_amax_group(const Environment& environment,
                                                              std::size_t ranks);

}  // namespace capo
