// Tells whether the groups that a model declares are of ranks that a schedule has. Tested by
// tests/cli/environment_test.cpp and python/tests/test_check.py.

#pragma once

#include "core/model/model.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace capo {

/// The reason why they do not fit an input of so many ranks, one at least; nullopt if they do.
[[nodiscard]] std::optional<std::string> misfit_of_groups(
    const std::vector<CollectiveGroup>& groups, std::size_t ranks);

}  // namespace capo
