#include "schedules/setting_checks.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <utility>

namespace capo::schedules {

std::optional<std::string> refuse_counts(std::string_view schedule, const Setting& setting) {
  const std::pair<const char*, std::int32_t> counts[] = {{"one rank", setting.ranks},
                                                         {"one microbatch", setting.microbatches},
                                                         {"one chunk a rank", setting.chunks}};
  for (const auto& [least, count] : counts) {
    if (count < 1) return fmt::format("{} needs {} at least, not {}", schedule, least, count);
  }
  const std::int64_t stages = std::int64_t{setting.ranks} * setting.chunks;
  if (stages > kMostForwards || stages * setting.microbatches > kMostForwards) {
    return fmt::format("{} would have more than {} forwards: {} ranks, {} chunks, {} microbatches",
                       schedule, kMostForwards, setting.ranks, setting.chunks,
                       setting.microbatches);
  }
  return std::nullopt;
}

std::optional<std::string> refuse_counts(std::string_view schedule, const Setting& setting,
                                         std::int32_t chunks) {
  if (auto refusal = refuse_counts(schedule, setting)) return refusal;
  if (setting.chunks == chunks) return std::nullopt;
  return fmt::format("{} holds {} a rank, not {}", schedule,
                     chunks == 1 ? "one chunk" : fmt::format("{} chunks", chunks), setting.chunks);
}

std::optional<std::string> refuse_costs(std::string_view schedule, const Setting& setting) {
  const std::size_t stated = setting.rank_costs.size();
  if (stated != 0 && std::cmp_not_equal(stated, setting.ranks)) {
    return fmt::format("{} needs times of each of the {} ranks, not of {}", schedule, setting.ranks,
                       stated);
  }
  const std::int32_t different = stated == 0 ? 1 : setting.ranks;
  for (std::int32_t rank = 0; rank < different; ++rank) {
    const Costs& costs = setting.costs_of(rank);
    for (const double time : {costs.forward, costs.backward, costs.weight, costs.transfer}) {
      if (std::isfinite(time) && time >= 0) continue;
      return fmt::format("{} needs times that are finite and not negative, not {}", schedule, time);
    }
  }
  return std::nullopt;
}

std::optional<std::string> refuse_rank_costs(std::string_view schedule, const Setting& setting) {
  if (setting.rank_costs.empty()) return std::nullopt;
  return fmt::format("{} is made for ranks that all take the same times", schedule);
}

}  // namespace capo::schedules
