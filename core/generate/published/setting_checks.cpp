#include <capo/core/generate/published/setting_checks.h>

#include <fmt/format.h>

#include <utility>

namespace capo::published {

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

}  // namespace capo::published
