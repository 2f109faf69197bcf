// Published schedules as the options of `generate` and `sweep` ask for them. Their limits are those
// of reading: a schedule that is made within them can be read within them.

#pragma once

#include "core/base/error.h"
#include "core/base/result.h"
#include "core/order/schedule.h"
#include "core/text/limits.h"
#include "schedules/catalogue.h"
#include "sim/choice.h"
#include "sim/costs.h"
#include "sim/memory.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace CLI {
class App;
}

namespace capo::cli {

/// The reason why no schedule was made: a sentence about the request, or a limit that it exceeds.
using NotMade = std::variant<std::string, Error>;

/// Makes a schedule with the costs of a command line that refuse_scopes() let pass.
[[nodiscard]] Result<Schedule, NotMade> make_named(schedules::Request request,
                                                   const std::vector<CostSetting>& costs,
                                                   CostPer per, const Limits& limits);

/// The limit that a schedule of this size exceeds, of `kinds` entries for each microbatch of a
/// chunk; nullopt if it exceeds none.
[[nodiscard]] std::optional<Error> too_large(const schedules::Size& size, std::int32_t ranks,
                                             std::uint64_t kinds, const Limits& limits);

/// The names with `all` replaced by those of every published schedule.
[[nodiscard]] std::vector<std::string> with_all(const std::vector<std::string>& names);

/// Declares --sort.
void add_sort(CLI::App& app, SortBy& sort);

/// Generators know one time a kind and rank, and one for all links; throws CLI::ValidationError for
/// a setting of any other scope.
void refuse_scopes(const std::vector<CostSetting>& costs, std::int32_t ranks);

[[nodiscard]] schedules::Memory generator_memory(const MemoryChange& change);

}  // namespace capo::cli
