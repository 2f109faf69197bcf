// Published schedules as the options of `generate` and `sweep` ask for them. Their limits are those
// of reading: a schedule that is made within them can be read within them.

#pragma once

#include "core/base/error.h"
#include "core/base/result.h"
#include "core/order/schedule.h"
#include "core/text/limits.h"
#include "schedules/catalogue.h"
#include "sim/costs.h"
#include "sim/memory.h"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace capo::cli {

/// The reason why no schedule was made: a sentence about the request, or a limit that it exceeds.
using NotMade = std::variant<std::string, Error>;

/// Makes a schedule with the costs of a command line that refuse_scopes() let pass.
[[nodiscard]] Result<Schedule, NotMade> make_named(schedules::Request request,
                                                   const std::vector<CostSetting>& costs,
                                                   const Limits& limits);

/// Generators know one time a kind and rank, and one for all links; throws CLI::ValidationError for
/// a setting of any other scope.
void refuse_scopes(const std::vector<CostSetting>& costs, std::int32_t ranks);

[[nodiscard]] schedules::Memory generator_memory(const MemoryChange& change);

}  // namespace capo::cli
