#include "cli/options/named_schedule.h"

#include "cli/options/choice.h"
#include "core/base/index.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

namespace capo::cli {

namespace {

void apply(const CostSetting& setting, schedules::Costs& costs, LinkCosts& link) {
  using Key = CostSetting::Key;
  if (setting.key == Key::Forward) costs.forward = setting.value;
  if (setting.key == Key::Backward) costs.backward = setting.value;
  if (setting.key == Key::Weight) costs.weight = setting.value;
  if (setting.key == Key::Latency) link.latency = setting.value;
  if (setting.key == Key::Bandwidth) link.bandwidth = setting.value;
  if (setting.key == Key::Bytes) link.bytes = setting.value;
  costs.transfer = link.total();
}

// Gives every rank costs of its own as soon as one differs; all links are alike.
void take_costs(const std::vector<CostSetting>& settings, schedules::Request& request) {
  LinkCosts link;
  LinkCosts ignored;
  for (const CostSetting& setting : settings) {
    const std::int32_t of_rank = setting.scope.rank;
    if (of_rank >= 0 && request.rank_costs.empty()) {
      request.rank_costs.assign(as_index(request.ranks), request.costs);
    }
    if (of_rank < 0) apply(setting, request.costs, link);
    for (std::size_t rank = 0; rank < request.rank_costs.size(); ++rank) {
      const bool meant = of_rank < 0 || of_rank == static_cast<std::int32_t>(rank);
      if (meant) apply(setting, request.rank_costs[rank], ignored);
    }
  }
  for (schedules::Costs& costs : request.rank_costs) costs.transfer = request.costs.transfer;
}

// Generators take the times of a chunk. Only ratios matter to them, so where times are of a rank,
// it is the transfer that grows by the chunks that share them, and all numbers stay as typed.
void share_among_chunks(const schedules::Size& size, schedules::Request& request) {
  const double passed = static_cast<double>(size.chunks) / size.pipelines;
  request.costs.transfer *= passed;
  for (schedules::Costs& costs : request.rank_costs) costs.transfer *= passed;
}

Error over(std::string_view what, std::uint64_t most, const char* flag) {
  return {.kind = ErrorKind::Limit,
          .message = fmt::format("the schedule has more than {} {}", most, what),
          .help = fmt::format("raise the limit with {}", flag)};
}

std::uint64_t entries_of(const Schedule& schedule) {
  std::uint64_t entries = 0;
  for (const RankOrder& rank : schedule.ranks) entries += rank.order.size();
  return entries;
}

}  // namespace

std::optional<Error> too_large(const schedules::Size& size, std::int32_t ranks, std::uint64_t kinds,
                               const Limits& limits) {
  const auto of_all = static_cast<std::uint64_t>(ranks);
  const auto chunks = static_cast<std::uint64_t>(size.chunks) * of_all;
  const auto microbatches = static_cast<std::uint64_t>(size.microbatches);
  if (of_all > limits.ranks) return over("ranks", limits.ranks, "--max-ranks");
  if (std::max(microbatches, chunks) > limits.counts) {
    return over("microbatches or chunks", limits.counts, "--max-count");
  }
  if (microbatches > 0 && kinds * chunks > limits.entries / microbatches) {
    return over("entries", limits.entries, "--max-entries");
  }
  return std::nullopt;
}

std::vector<std::string> with_all(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const std::string& name : names) {
    if (name != "all") {
      out.push_back(name);
      continue;
    }
    for (const schedules::Entry& entry : schedules::entries()) out.emplace_back(entry.name);
  }
  return out;
}

void add_sort(CLI::App& app, SortBy& sort) {
  add_choice(
      app, "--sort", sort,
      words_of({SortBy::Given, SortBy::Makespan, SortBy::Span, SortBy::Bubble, SortBy::Peak}),
      "By what the best comes first, those that exceed --memory last; given: as typed, the "
      "best by makespan");
}

void refuse_scopes(const std::vector<CostSetting>& costs, std::int32_t ranks) {
  for (const CostSetting& setting : costs) {
    const CostScope& scope = setting.scope;
    if (scope.chunk >= 0 || scope.layer >= 0 || scope.peer >= 0) {
      throw CLI::ValidationError(
          "--cost",
          "a schedule is made for times of whole ranks, r0:f=2, and for links "
          "that are all alike");
    }
    if (scope.rank >= ranks) {
      throw CLI::ValidationError(
          "--cost", fmt::format("speaks of rank {}, but there are {}", scope.rank, ranks));
    }
  }
}

schedules::Memory generator_memory(const MemoryChange& change) {
  return {.forward = change.forward, .backward = change.backward, .weight = change.weight};
}

Result<Schedule, NotMade> make_named(schedules::Request request,
                                     const std::vector<CostSetting>& costs, CostPer per,
                                     const Limits& limits) {
  const auto size = schedules::size_of(request);
  if (!size) return NotMade{size.error()};
  // A backward is one entry or two, so that the number of entries is known to a factor of two.
  if (auto large = too_large(*size, request.ranks, 2, limits)) {
    return NotMade{*std::move(large)};
  }
  take_costs(costs, request);
  if (per == CostPer::Rank) share_among_chunks(*size, request);
  auto schedule = schedules::schedule_named(request);
  if (!schedule) return NotMade{schedule.error()};
  if (entries_of(*schedule) > limits.entries) {
    return NotMade{over("entries", limits.entries, "--max-entries")};
  }
  return *std::move(schedule);
}

}  // namespace capo::cli
