#include "schedules/zero_bubble_search.h"
#include "schedules/setting_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace capo::published {

namespace {

/// When a rank stops to run forwards ahead of its first backward, memory permitting.
enum class WarmUp {
  EndsInTime,  ///< before one that would end after the first gradient arrives
  FillsWait,   ///< once it would not wait for that gradient any more
};
/// Whether a rank that is two forwards ahead of the next may leave out the forward of a round.
enum class RoundForward { MayBeLeftOut, Always };
/// What becomes of a wait that is too short for a W and does not lengthen the span by itself.
enum class ShortWait { Filled, Kept };

struct Choices {
  WarmUp warm_up;
  RoundForward round_forward;
  ShortWait short_wait;
};

struct Rank {
  Costs costs;
  double clock = 0;
  double idle = 0;  ///< since its first forward
  MemoryLimit::Tasks run;
  std::vector<double> forward_ends;
  std::vector<double> backward_ends;
  std::vector<Move> order;
};

class LinearSearch {
 public:
  LinearSearch(const Setting& setting, const Choices& choices)
      : transfer_(setting.transfer()),
        microbatches_(setting.microbatches),
        memory_(setting),
        choices_(choices) {
    for (std::int32_t r = 0; r < setting.ranks; ++r) {
      Rank& rank = ranks_.emplace_back(Rank{.costs = setting.costs_of(r)});
      rank.order.reserve(3 * static_cast<std::size_t>(microbatches_));
    }
  }

  void search() {
    warm_up();
    for (std::int32_t round = 1; round < microbatches_; ++round) {
      run_forwards(ranks_with_forward());
      run_backwards();
    }
    for (Rank& rank : ranks_) {
      while (rank.run.weights < microbatches_) weight(rank);
    }
  }

  [[nodiscard]] double span() const {
    double longest = 0;
    for (const Rank& rank : ranks_) {
      longest = std::max(longest, rank.clock - rank.forward_ends.front() + rank.costs.forward);
    }
    return longest;
  }

  [[nodiscard]] PublishedOrders orders() && {
    PublishedOrders orders;
    for (Rank& rank : ranks_) orders.push_back(std::move(rank.order));
    return orders;
  }

 private:
  void warm_up() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) forward(r);
    const std::vector<std::int32_t> ahead = forwards_ahead();
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      for (std::int32_t i = 0; i < ahead[r]; ++i) forward(r);
    }
    for (std::size_t r = ranks_.size(); r-- > 0;) backward(r);
  }

  // Forwards between F0 and B0 by rank: as many as memory and the way of the first gradient allow,
  // fewer than on the rank before as long as there are microbatches left.
  [[nodiscard]] std::vector<std::int32_t> forwards_ahead() const {
    std::vector<std::int32_t> ahead(ranks_.size(), 0);
    double gradient_leaves = ranks_.back().clock + ranks_.back().costs.backward;
    for (std::size_t r = ranks_.size() - 1; r-- > 0;) {
      const Rank& rank = ranks_[r];
      const double arrival = gradient_leaves + transfer_;
      double clock = rank.clock;
      while (ahead[r] + 1 < microbatches_ && memory_.fits_forwards(rank.run, ahead[r] + 1) &&
             !warm(rank, clock, arrival)) {
        clock += rank.costs.forward;
        ++ahead[r];
      }
      gradient_leaves = std::max(clock, arrival) + rank.costs.backward;
    }
    for (std::size_t r = 1; r < ranks_.size(); ++r) {
      ahead[r] = std::min(ahead[r], ahead[r - 1]);
      if (ahead[r] + 1 < microbatches_) ahead[r] = std::clamp(ahead[r - 1] - 1, 0, ahead[r]);
    }
    return ahead;
  }

  [[nodiscard]] bool warm(const Rank& rank, double clock, double arrival) const {
    if (choices_.warm_up == WarmUp::EndsInTime) return clock + rank.costs.forward > arrival;
    return clock >= arrival;
  }

  // A rank that leaves its forward out takes those before it along: they would only run further
  // ahead of it.
  [[nodiscard]] std::vector<bool> ranks_with_forward() const {
    std::vector<bool> runs(ranks_.size());
    bool next_runs = true;
    for (std::size_t r = ranks_.size(); r-- > 0;) {
      next_runs = next_runs && wants_forward(r);
      runs[r] = next_runs;
    }
    return runs;
  }

  [[nodiscard]] bool wants_forward(std::size_t r) const {
    const Rank& rank = ranks_[r];
    if (rank.run.forwards == microbatches_) return false;
    if (choices_.round_forward == RoundForward::Always || r + 1 == ranks_.size()) return true;
    const Rank& next = ranks_[r + 1];
    if (rank.run.forwards < next.run.forwards + 2) return true;
    const double gradient_arrives =
        next.clock + next.costs.forward + next.costs.backward + transfer_;
    if (rank.clock >= gradient_arrives) return false;
    if (rank.clock + rank.costs.forward + time_to_make_room(rank) <= gradient_arrives) return true;
    return gradient_arrives - rank.clock > harmless_wait(rank);
  }

  [[nodiscard]] double time_to_make_room(const Rank& rank) const {
    double time = 0;
    MemoryLimit::Tasks run = rank.run;
    for (; !memory_.fits_forwards(run) && run.weights < run.backwards; ++run.weights) {
      time += rank.costs.weight;
    }
    return time;
  }

  void run_forwards(const std::vector<bool>& runs) {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (!runs[r]) continue;
      Rank& rank = ranks_[r];
      while (!memory_.fits_forwards(rank.run)) weight(rank);
      if (r > 0) fill_wait(rank, arrival(ranks_[r - 1].forward_ends, rank.run.forwards));
      forward(r);
    }
  }

  void run_backwards() {
    for (std::size_t r = ranks_.size(); r-- > 0;) {
      Rank& rank = ranks_[r];
      while (!memory_.fits_backward(rank.run)) weight(rank);
      if (r + 1 < ranks_.size()) {
        fill_wait(rank, arrival(ranks_[r + 1].backward_ends, rank.run.backwards));
      }
      // The first rank has nothing to hand on, so a W after its last forward delays nobody.
      if (r == 0 && rank.run.forwards == microbatches_) {
        while (has_weight(rank)) weight(rank);
      }
      backward(r);
    }
  }

  void fill_wait(Rank& rank, double arrival) {
    while (has_weight(rank) && rank.clock + rank.costs.weight <= arrival) weight(rank);
    if (!has_weight(rank) || rank.clock >= arrival) return;
    const bool harmless = arrival - rank.clock <= harmless_wait(rank);
    if (!harmless || choices_.short_wait == ShortWait::Filled) weight(rank);
  }

  // The rank that waits most decides on the span; the others may catch up with it.
  [[nodiscard]] double harmless_wait(const Rank& rank) const { return most_idle_ - rank.idle; }

  [[nodiscard]] static bool has_weight(const Rank& rank) {
    return rank.run.weights < rank.run.backwards;
  }

  [[nodiscard]] double arrival(const std::vector<double>& ends, std::int32_t microbatch) const {
    const auto index = static_cast<std::size_t>(microbatch);
    CAPO_ASSERT(index < ends.size(), "a rank runs what the rank before it has run");
    return ends[index] + transfer_;
  }

  void forward(std::size_t r) {
    Rank& rank = ranks_[r];
    double end = rank.clock + rank.costs.forward;
    if (r > 0) {
      const double input = arrival(ranks_[r - 1].forward_ends, rank.run.forwards);
      end = wait(rank, end, input + rank.costs.forward);
    }
    rank.clock = end;
    rank.forward_ends.push_back(end);
    rank.order.push_back({.kind = Kind::Forward, .microbatch = rank.run.forwards++});
  }

  void backward(std::size_t r) {
    Rank& rank = ranks_[r];
    CAPO_ASSERT(rank.run.backwards < rank.run.forwards, "a backward follows its forward");
    double end = rank.clock + rank.costs.backward;
    if (r + 1 < ranks_.size()) {
      const double input = arrival(ranks_[r + 1].backward_ends, rank.run.backwards);
      end = wait(rank, end, input + rank.costs.backward);
    }
    rank.clock = end;
    rank.backward_ends.push_back(end);
    rank.order.push_back({.kind = Kind::BackwardInput, .microbatch = rank.run.backwards++});
  }

  void weight(Rank& rank) {
    CAPO_ASSERT(has_weight(rank), "a limit that holds a microbatch never needs more Ws than wait");
    rank.clock += rank.costs.weight;
    rank.order.push_back({.kind = Kind::BackwardWeight, .microbatch = rank.run.weights++});
  }

  double wait(Rank& rank, double end_at_once, double end_after_input) {
    const double end = std::max(end_at_once, end_after_input);
    if (rank.run.forwards > 0) {
      rank.idle += end - end_at_once;
      most_idle_ = std::max(most_idle_, rank.idle);
    }
    return end;
  }

  double transfer_;
  std::int32_t microbatches_;
  MemoryLimit memory_;
  Choices choices_;
  std::vector<Rank> ranks_;
  double most_idle_ = 0;
};

// The last bits of thirds and tenths are no reason to leave out a microbatch.
double rounded_up(double limit) {
  return limit + 1e-12 * std::abs(limit);
}

/// Behind the point.
constexpr int kMostDigits = 6;
/// Of a time in the smaller unit: sums of millions of them are still exact.
constexpr double kLongest = 1e9;

/// In a unit so many times smaller, if it is a whole number there, but for its last bits.
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

constexpr std::array<Choices, 8> all_choices() {
  std::array<Choices, 8> all{};
  std::size_t next = 0;
  for (const WarmUp warm_up : {WarmUp::EndsInTime, WarmUp::FillsWait}) {
    for (const RoundForward forward : {RoundForward::MayBeLeftOut, RoundForward::Always}) {
      for (const ShortWait wait : {ShortWait::Filled, ShortWait::Kept}) {
        all[next++] = {.warm_up = warm_up, .round_forward = forward, .short_wait = wait};
      }
    }
  }
  return all;
}

}  // namespace

MemoryLimit::MemoryLimit(const Setting& setting)
    : forward_(setting.memory.forward),
      kept_(std::max(0.0, setting.memory.forward + setting.memory.backward)),
      headroom_(std::max(0.0, setting.memory.backward)),
      limit_(rounded_up(setting.memory_limit)) {
}

bool MemoryLimit::fits_forwards(const Tasks& run, std::int32_t more) const {
  const std::int32_t without_backward = run.forwards + more - run.backwards;
  const std::int32_t without_weight = run.backwards - run.weights;
  return forward_ * without_backward + kept_ * without_weight + headroom_ <= limit_;
}

bool MemoryLimit::fits_backward(const Tasks& run) const {
  const std::int32_t without_backward = run.forwards - run.backwards - 1;
  const std::int32_t without_weight = run.backwards + 1 - run.weights;
  return forward_ * without_backward + kept_ * without_weight <= limit_;
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

Result<PublishedOrders, std::string> zero_bubble_search(const Setting& setting) {
  if (auto refusal = refuse_search("zb", setting, 1)) {
    return std::move(*refusal);
  }
  const Setting whole = in_whole_times(setting);
  std::optional<LinearSearch> shortest;
  for (const Choices& choices : all_choices()) {
    LinearSearch attempt(whole, choices);
    attempt.search();
    if (!shortest || attempt.span() < shortest->span()) shortest = std::move(attempt);
  }
  return std::move(*shortest).orders();
}

}  // namespace capo::published
