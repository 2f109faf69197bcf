#include "schedules/zero_bubble_pipeline.h"

#include "core/base/index.h"
#include "schedules/setting_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace capo::schedules::zero_bubble {

namespace {

// A limit that is short by the last bits of a third or a tenth leaves out no microbatch.
double rounded_up(double limit) {
  return limit + 1e-12 * std::abs(limit);
}

/// Decimal places that are scaled to whole numbers.
constexpr int kMostDigits = 6;
/// The longest time in the smaller unit: sums of millions of such times are still exact.
constexpr double kLongest = 1e9;

// The time in a unit that is so many times smaller; nullopt if it is no whole number there, give or
// take its last bits.
std::optional<double> whole_time(double time, double unit) {
  const double exact = time * unit;
  const double whole = std::round(exact);
  if (exact > kLongest || std::abs(exact - whole) > 1e-15 * exact) return std::nullopt;
  return whole;
}

std::optional<Costs> whole_times(const Costs& costs, double unit) {
  const auto forward = whole_time(costs.forward, unit);
  const auto backward = whole_time(costs.backward, unit);
  const auto weight = whole_time(costs.weight, unit);
  const auto transfer = whole_time(costs.transfer, unit);
  if (!forward || !backward || !weight || !transfer) return std::nullopt;
  return Costs{*forward, *backward, *weight, *transfer};
}

std::optional<Setting> whole_times(const Setting& setting, double unit) {
  Setting whole = setting;
  whole.rank_costs.clear();
  if (setting.rank_costs.empty()) {
    const auto costs = whole_times(setting.costs, unit);
    if (!costs) return std::nullopt;
    whole.costs = *costs;
  }
  for (const Costs& of_rank : setting.rank_costs) {
    const auto costs = whole_times(of_rank, unit);
    if (!costs) return std::nullopt;
    whole.rank_costs.push_back(*costs);
  }
  return whole;
}

double work(const Costs& costs) {
  return costs.forward + costs.backward + costs.weight;
}

}  // namespace

MemoryLimit::MemoryLimit(const Setting& setting)
    : forward_(setting.memory.forward),
      kept_(std::max(0.0, setting.memory.forward + setting.memory.backward)),
      headroom_(std::max(0.0, setting.memory.backward)),
      limit_(rounded_up(setting.memory_limit)) {
}

Setting in_whole_times(const Setting& setting) {
  double unit = 1;
  for (int digits = 0; digits <= kMostDigits; ++digits, unit *= 10) {
    if (auto whole = whole_times(setting, unit)) return *std::move(whole);
  }
  return setting;
}

std::optional<std::string> refuse_search(std::string_view schedule, const Setting& setting,
                                         std::int32_t chunks) {
  if (auto refusal = refuse_counts(schedule, setting, chunks)) return refusal;
  if (auto refusal = refuse_costs(schedule, setting)) return refusal;
  const Memory& memory = setting.memory;
  const double kept = memory.forward + memory.backward;
  const double rounding = 1e-9 * std::max(memory.forward, kept);
  if (!std::isfinite(kept) || memory.forward < 0 || kept < -rounding) {
    return fmt::format("{} needs a memory of 0 at least after F and after B, not {} and {}",
                       schedule, memory.forward, kept);
  }
  if (!(std::abs(kept + memory.weight) <= rounding)) {
    return fmt::format("{} needs a W that gives back all that F and B hold, {}, not {}", schedule,
                       kept, -memory.weight);
  }
  const double least = memory.forward * chunks + std::max(0.0, memory.backward);
  if (!(rounded_up(setting.memory_limit) >= least)) {
    return fmt::format("no order holds less than {} on a rank, and the limit is {}", least,
                       setting.memory_limit);
  }
  return std::nullopt;
}

Pipeline::Pipeline(const Setting& setting, Shape shape)
    : shape_(shape),
      transfer_(setting.transfer()),
      microbatches_(setting.microbatches),
      memory_(setting),
      ranks_(as_index(setting.ranks)) {
  const bool v = shape == Shape::V;
  const std::size_t chunks = v ? 2 : 1;
  const auto steps = as_index(microbatches_);
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    rank.costs = setting.costs_of(static_cast<std::int32_t>(r));
    for (const Step step : {kForwardOut, kBackwardBack}) rank.ends[index_of(step)].reserve(steps);
    if (v) {
      for (const Step step : {kForwardBack, kBackwardOut}) rank.ends[index_of(step)].reserve(steps);
      rank.owed.reserve(2 * steps);
    }
    rank.order.reserve(3 * chunks * steps);
  }
}

void Pipeline::run_weights_left() {
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    while (ranks_[r].owes_weight()) run_weight(r);
  }
}

void Pipeline::count_surplus_work_as_idle() {
  double least = work(ranks_.front().costs);
  for (const Rank& rank : ranks_) least = std::min(least, work(rank.costs));
  const std::int32_t tasks = (shape_ == Shape::V ? 2 : 1) * microbatches_;
  for (Rank& rank : ranks_) {
    rank.idle = tasks * (work(rank.costs) - least);
    most_idle_ = std::max(most_idle_, rank.idle);
  }
}

PublishedOrders Pipeline::orders() && {
  PublishedOrders orders;
  for (Rank& rank : ranks_) orders.push_back(std::move(rank.order));
  return orders;
}

}  // namespace capo::schedules::zero_bubble
