#include "schedules/v_grid.h"

#include "core/base/assert.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <utility>

namespace capo::schedules {

namespace {

/// A longer grid is timed for so many periods for each rank; if it does not repeat itself by then,
/// all of it is.
constexpr std::size_t kTellingPeriods = 16;
/// Ranks may be late by turns, so that times repeat after one, two, three or more periods.
constexpr std::uint32_t kCycle = 12;

class Squeeze {
 public:
  Squeeze(const VGrid& grid, std::size_t microbatches)
      : from_(grid),
        to_(grid.ranks(), grid.slots()),
        microbatches_(microbatches),
        counts_(grid.ranks()),
        end_of_rank_(grid.ranks(), 0),
        end_of_(grid.ranks(), microbatches, kNotYet, 0) {}

  /// Returns nullopt if a task stands before its input. An input may come from a neighbour in the
  /// same slot: passes that go down are looked at downwards, the others upwards.
  [[nodiscard]] std::optional<VGrid> run() {
    const std::size_t ranks = from_.ranks();
    bool possible = true;
    for (std::size_t slot = 0; slot < from_.slots() && possible; ++slot) {
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const Pass pass = from_.at(rank, slot);
        if (pass != Pass::Nothing && !comes_up(pass)) possible = place(rank, pass) && possible;
      }
      for (std::size_t rank = ranks; rank-- > 0;) {
        const Pass pass = from_.at(rank, slot);
        if (comes_up(pass)) possible = place(rank, pass) && possible;
      }
    }
    if (!possible) return std::nullopt;
    to_.resize(*std::ranges::max_element(end_of_rank_));
    return std::move(to_);
  }

 private:
  [[nodiscard]] bool place(std::size_t rank, Pass pass) {
    const std::uint32_t microbatch = counts_[rank][as_index(pass)]++;
    if (microbatch >= microbatches_) return false;
    const bool turns = turns_at(rank, from_.ranks(), pass);
    if (turns && counts_[rank][as_index(local_input(pass))] <= microbatch) return false;
    const std::uint32_t slot =
        std::max(end_of_rank_[rank], end_of_.input_of(rank, pass, microbatch));
    if (slot >= to_.slots()) return false;
    to_.at(rank, slot) = pass;
    end_of_rank_[rank] = slot + 1;
    end_of_.at(rank, pass, microbatch) = slot + 1;
    return true;
  }

  const VGrid& from_;
  VGrid to_;
  std::size_t microbatches_;
  std::vector<Counts> counts_;
  std::vector<std::uint32_t> end_of_rank_;
  SlotTable end_of_;
};

/// Whether every rank runs every pass once in the period that begins at `slot`.
bool is_whole_period(const VGrid& grid, std::size_t slot) {
  for (std::size_t rank = 0; rank < grid.ranks(); ++rank) {
    Counts counts = {};
    for (std::size_t i = 0; i < kPeriod; ++i) {
      const Pass pass = grid.at(rank, slot + i);
      if (pass == Pass::Nothing || counts[as_index(pass)]++ > 0) return false;
    }
  }
  return true;
}

/// The steady period nearest to the middle, as far from warm-up and cool-down as can be.
std::optional<std::size_t> steady_slot(const VGrid& grid) {
  const auto is_steady = [&](std::size_t slot) {
    return slot + 2 * kPeriod <= grid.slots() && grid.are_equal(slot, slot + kPeriod, kPeriod) &&
           is_whole_period(grid, slot);
  };
  const std::size_t middle = grid.slots() / 2;
  for (std::size_t distance = 0; distance <= middle; ++distance) {
    if (is_steady(middle + distance)) return middle + distance;
    if (is_steady(middle - distance)) return middle - distance;
  }
  return std::nullopt;
}

/// The times of a grid's tasks, each after its input and the task before it on its rank.
class Timing {
 public:
  Timing(const VGrid& grid, std::size_t microbatches, const Costs& costs)
      : grid_(grid),
        costs_(costs),
        clocks_(grid.ranks()),
        // The border has arrived before any rank sends.
        end_of_(grid.ranks(), microbatches, std::numeric_limits<double>::infinity(),
                -costs.transfer) {}

  void run(std::size_t from, std::size_t to) {
    for (std::size_t slot = from; slot < to; ++slot) {
      for (std::size_t rank = 0; rank < clocks_.size(); ++rank) {
        const Pass pass = grid_.at(rank, slot);
        if (pass != Pass::Nothing) run_task(rank, pass);
      }
    }
  }

  /// Runs a period in which every rank runs every pass once.
  void run_period(std::size_t from) {
    run(from, from + kPeriod);
    const std::optional<double> later = later_by();
    const bool as_before = later && std::abs(*later - cycle_) <= kEqual * clocks_.front().now;
    alike_ = as_before ? alike_ + 1 : 0;
    cycle_ = later.value_or(0);
  }

  /// Whether all that later periods wait for came later by the same than a cycle before, so that
  /// they will, too.
  [[nodiscard]] bool repeats() const { return alike_ > 0 && alike_ >= microbatches_on_their_way(); }
  [[nodiscard]] double cycle() const { return cycle_; }

  [[nodiscard]] double span() const {
    double span = 0;
    for (const RankClock& clock : clocks_) {
      if (clock.first_end < 0) continue;  // it has not begun
      span = std::max(span, clock.now - clock.first_end + costs_.forward);
    }
    return span;
  }

 private:
  static constexpr double kEqual = 1e-12;

  struct RankClock {
    Counts counts = {};
    double now = 0;
    double first_end = -1;
  };

  void run_task(std::size_t rank, Pass pass) {
    RankClock& clock = clocks_[rank];
    const std::uint32_t microbatch = clock.counts[as_index(pass)]++;
    if (is_weight(pass)) {
      clock.now += costs_.weight;
      return;
    }
    clock.now = std::max(clock.now, end_of_.input_of(rank, pass, microbatch) + costs_.transfer);
    clock.now += is_forward(pass) ? costs_.forward : costs_.backward;
    if (clock.first_end < 0) clock.first_end = clock.now;
    end_of_.at(rank, pass, microbatch) = clock.now;
  }

  /// How much later every rank's last task of each pass ended than the one a cycle before it;
  /// nullopt if not all by the same.
  [[nodiscard]] std::optional<double> later_by() {
    std::optional<double> later;
    for (std::size_t rank = 0; rank < clocks_.size(); ++rank) {
      for (const Pass pass : kChain) {
        const std::uint32_t count = clocks_[rank].counts[as_index(pass)];
        if (count <= kCycle) return std::nullopt;
        const double last = end_of_.at(rank, pass, count - 1);
        const double by = last - end_of_.at(rank, pass, count - 1 - kCycle);
        if (later && std::abs(by - *later) > kEqual * last) return std::nullopt;
        later = by;
      }
    }
    return later;
  }

  [[nodiscard]] std::size_t microbatches_on_their_way() const {
    std::size_t begun = 0;
    std::size_t ended = std::numeric_limits<std::size_t>::max();
    for (const RankClock& clock : clocks_) {
      begun = std::max<std::size_t>(begun, clock.counts[as_index(Pass::Forward1)]);
      ended = std::min<std::size_t>(ended, clock.counts[as_index(Pass::Backward1)]);
    }
    return begun - ended;
  }

  const VGrid& grid_;
  Costs costs_;
  std::vector<RankClock> clocks_;
  TaskTable<double> end_of_;
  std::size_t alike_ = 0;  // so many periods came as much later than a cycle before
  double cycle_ = 0;
};

std::vector<Move> order_of(const VGrid& grid, std::size_t rank) {
  std::vector<Move> order;
  std::array<std::size_t, kPasses> counts = {};
  std::deque<Pass> waiting;
  for (std::size_t slot = 0; slot < grid.slots(); ++slot) {
    Pass pass = grid.at(rank, slot);
    if (pass == Pass::Nothing) continue;
    if (pass == Pass::Backward2) waiting.push_back(Pass::Weight2);
    if (pass == Pass::Backward1) waiting.push_back(Pass::Weight1);
    if (is_weight(pass)) {
      CAPO_ASSERT(!waiting.empty(), "a weight half runs after a backward that waits for it");
      pass = waiting.front();
      waiting.pop_front();
    }
    order.push_back(move_of(pass, counts[as_index(pass)]++));
  }
  return order;
}

}  // namespace

std::optional<VGrid> squeeze(const VGrid& grid, std::size_t microbatches) {
  return Squeeze(grid, microbatches).run();
}

std::vector<std::int64_t> peaks_of(const VGrid& grid) {
  std::vector<std::int64_t> held(grid.ranks(), 0);
  std::vector<std::int64_t> peaks(grid.ranks(), 0);
  for (std::size_t slot = 0; slot < grid.slots(); ++slot) {
    for (std::size_t rank = 0; rank < grid.ranks(); ++rank) {
      held[rank] += held_by(grid.at(rank, slot));
      peaks[rank] = std::max(peaks[rank], held[rank]);
    }
  }
  return peaks;
}

std::int64_t peak_of(const VGrid& grid) {
  return std::ranges::max(peaks_of(grid));
}

std::optional<VGrid> lengthen(const VGrid& grid, std::size_t microbatches) {
  const std::optional<std::size_t> steady = steady_slot(grid);
  if (!steady) return std::nullopt;
  VGrid longer(grid.ranks(), 0);
  longer.append(grid, 0, *steady);
  for (std::size_t i = 0; i < microbatches; ++i) longer.append(grid, *steady, kPeriod);
  longer.append(grid, *steady, grid.slots() - *steady);
  return longer;
}

double span_of(const VGrid& grid, std::size_t microbatches, const Costs& costs) {
  Timing timing(grid, microbatches, costs);
  timing.run(0, grid.slots());
  return timing.span();
}

std::optional<double> span_of_longer(const VGrid& grid, std::size_t microbatches, std::size_t more,
                                     const Costs& costs, double below) {
  if (more == 0) return span_of(grid, microbatches, costs);
  const std::optional<std::size_t> steady = steady_slot(grid);
  if (!steady) return std::nullopt;
  const std::size_t most = std::min(more, kTellingPeriods * grid.ranks());
  Timing timing(grid, microbatches + most, costs);
  timing.run(0, *steady);
  std::size_t periods = 0;
  const auto is_told = [&] { return timing.repeats() && (more - periods) % kCycle == 0; };
  // Every rank works on in all periods that are left, and a hair is more than sums are wrong.
  constexpr double kHair = 1e-9;
  const double work = 2 * (costs.forward + costs.backward + costs.weight);
  const auto is_longer = [&] {
    return timing.span() + static_cast<double>(more - periods) * work >= below * (1 + kHair);
  };
  for (; periods < most && !is_told(); ++periods) {
    if (periods % kCycle == 0 && is_longer()) return std::numeric_limits<double>::infinity();
    timing.run_period(*steady);
  }
  if (periods < more && !is_told()) {
    if (is_longer()) return std::numeric_limits<double>::infinity();
    return span_of(*lengthen(grid, more), microbatches + more, costs);
  }
  timing.run(*steady, grid.slots());
  return timing.span() + static_cast<double>((more - periods) / kCycle) * timing.cycle();
}

PublishedOrders orders_of(const VGrid& grid) {
  PublishedOrders orders;
  for (std::size_t rank = 0; rank < grid.ranks(); ++rank) orders.push_back(order_of(grid, rank));
  return orders;
}

}  // namespace capo::schedules
