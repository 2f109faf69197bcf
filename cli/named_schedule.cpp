#include <capo/cli/named_schedule.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>

namespace capo::cli {

published::Costs generator_costs(const std::vector<CostSetting>& settings) {
  using Key = CostSetting::Key;
  published::Costs costs;
  LinkCosts link;
  for (const CostSetting& setting : settings) {
    if (!setting.scope.everything()) {
      throw CLI::ValidationError(
          "--cost", "schedules are made for costs that are the same everywhere; leave out the scope");
    }
    if (setting.key == Key::Forward) costs.forward = setting.value;
    if (setting.key == Key::Backward) costs.backward = setting.value;
    if (setting.key == Key::Weight) costs.weight = setting.value;
    if (setting.key == Key::Latency) link.latency = setting.value;
    if (setting.key == Key::Bandwidth) link.bandwidth = setting.value;
    if (setting.key == Key::Bytes) link.bytes = setting.value;
  }
  costs.transfer = link.total();
  return costs;
}

published::Memory generator_memory(const MemoryChange& change) {
  return {.forward = change.forward, .backward = change.backward, .weight = change.weight};
}

std::optional<Error> too_large(const published::Request& request, const Limits& limits) {
  const auto ranks = static_cast<std::uint64_t>(request.ranks);
  const auto microbatches = static_cast<std::uint64_t>(request.microbatches);
  const auto chunks = static_cast<std::uint64_t>(request.chunks.value_or(4));
  const auto over = [](std::string_view what, std::uint64_t most, const char* flag) {
    return Error{.kind = ErrorKind::Limit,
                 .message = fmt::format("the schedule has more than {} {}", most, what),
                 .help = fmt::format("raise the limit with {}", flag)};
  };
  if (ranks > limits.ranks) return over("ranks", limits.ranks, "--max-ranks");
  if (std::max(microbatches, chunks) > limits.counts) {
    return over("microbatches or chunks", limits.counts, "--max-count");
  }
  // Counts are below 2^31 each; ranks are few.
  const std::uint64_t largest = limits.entries / 3 / std::max<std::uint64_t>(ranks, 1);
  if (microbatches > largest / std::max<std::uint64_t>(chunks, 1)) {
    return over("entries", limits.entries, "--max-entries");
  }
  return std::nullopt;
}

}  // namespace capo::cli
