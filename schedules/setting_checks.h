// The first questions that every generator asks of a setting: each check returns one sentence if
// the schedule cannot be made, and nullopt if it can. Tested by setting_checks_test.cpp.

#pragma once

#include "schedules/orders.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace capo::schedules {

/// A schedule has no more forwards than this over all ranks and chunks. Its orders fill gigabytes
/// then, and every number of a generator stays far below the largest of its type.
constexpr std::int64_t kMostForwards = 100'000'000;

/// Asks for one rank, one microbatch and one chunk at least, and for no more than kMostForwards.
[[nodiscard]] std::optional<std::string> refuse_counts(std::string_view schedule,
                                                       const Setting& setting);

/// Asks besides that ranks hold exactly so many chunks.
[[nodiscard]] std::optional<std::string> refuse_counts(std::string_view schedule,
                                                       const Setting& setting, std::int32_t chunks);

/// Asks for finite times that are not negative, of every rank if they are stated by rank.
[[nodiscard]] std::optional<std::string> refuse_costs(std::string_view schedule,
                                                      const Setting& setting);

/// Refuses times by rank, for a search that knows only times that are the same on all ranks.
[[nodiscard]] std::optional<std::string> refuse_rank_costs(std::string_view schedule,
                                                           const Setting& setting);

}  // namespace capo::schedules
