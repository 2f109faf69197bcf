#include <capo/cli/named_schedule.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>

namespace capo::cli {

namespace {

void apply(const CostSetting& setting, published::Costs& costs, LinkCosts& link) {
  using Key = CostSetting::Key;
  if (setting.key == Key::Forward) costs.forward = setting.value;
  if (setting.key == Key::Backward) costs.backward = setting.value;
  if (setting.key == Key::Weight) costs.weight = setting.value;
  if (setting.key == Key::Latency) link.latency = setting.value;
  if (setting.key == Key::Bandwidth) link.bandwidth = setting.value;
  if (setting.key == Key::Bytes) link.bytes = setting.value;
  costs.transfer = link.total();
}

}  // namespace

void take_costs(const std::vector<CostSetting>& settings, published::Request& request) {
  LinkCosts link;
  LinkCosts ignored;
  for (const CostSetting& setting : settings) {
    const CostScope& scope = setting.scope;
    if (scope.chunk >= 0 || scope.layer >= 0 || scope.peer >= 0) {
      throw CLI::ValidationError(
          "--cost",
          "a schedule is made for times of whole ranks, r0:f=2, and for links "
          "that are all alike");
    }
    if (scope.rank >= request.ranks) {
      throw CLI::ValidationError(
          "--cost", fmt::format("speaks of rank {}, but there are {}", scope.rank, request.ranks));
    }
    if (scope.rank >= 0 && request.rank_costs.empty()) {
      request.rank_costs.assign(static_cast<std::size_t>(request.ranks), request.costs);
    }
    if (scope.rank < 0) apply(setting, request.costs, link);
    for (std::size_t rank = 0; rank < request.rank_costs.size(); ++rank) {
      const bool meant = scope.rank < 0 || scope.rank == static_cast<std::int32_t>(rank);
      if (meant) apply(setting, request.rank_costs[rank], ignored);
    }
  }
  for (published::Costs& costs : request.rank_costs) costs.transfer = request.costs.transfer;
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
