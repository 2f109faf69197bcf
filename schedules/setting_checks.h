// What every generator asks of a setting before it looks closer. Each answers in one sentence why
// the schedule cannot be made, or nothing.
// Tested by setting_checks_test.cpp.

#pragma once

#include "schedules/orders.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace capo::published {

/// Of a schedule, over all ranks and chunks. An order of so many fills gigabytes, and every number
/// that a generator works with stays far below the largest of its type.
constexpr std::int64_t kMostForwards = 100'000'000;

/// One rank, one microbatch and one chunk at least, and not beyond kMostForwards.
[[nodiscard]] std::optional<std::string> refuse_counts(std::string_view schedule,
                                                       const Setting& setting);

/// The same for a schedule whose ranks hold exactly so many chunks.
[[nodiscard]] std::optional<std::string> refuse_counts(std::string_view schedule,
                                                       const Setting& setting, std::int32_t chunks);

/// Finite times that are not negative, of every rank if they are stated by rank.
[[nodiscard]] std::optional<std::string> refuse_costs(std::string_view schedule,
                                                      const Setting& setting);

/// Of a search that knows only times that are the same on all ranks.
[[nodiscard]] std::optional<std::string> refuse_rank_costs(std::string_view schedule,
                                                           const Setting& setting);

}  // namespace capo::published
