// Published schedules as the command line asks for them, for `generate` and `sweep`.

#pragma once

#include <capo/core/base/error.h>
#include <capo/core/generate/published/catalogue.h>
#include <capo/core/text/limits.h>
#include <capo/sim/costs.h>
#include <capo/sim/memory.h>

#include <optional>
#include <vector>

namespace capo::cli {

/// Into the request, whose ranks are known. Generators know one time a kind and rank, and one for
/// all links; throws CLI::ValidationError for a setting of any other scope.
void take_costs(const std::vector<CostSetting>& settings, published::Request& request);
[[nodiscard]] published::Memory generator_memory(const MemoryChange& change);

/// Why a schedule of these counts is not made; nothing if it is within the limits.
[[nodiscard]] std::optional<Error> too_large(const published::Request& request,
                                             const Limits& limits);

}  // namespace capo::cli
