#include "schedules/v_grid.h"

#include "core/base/assert.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace capo::schedules {

namespace {

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
  struct RankClock {
    Counts counts = {};
    double now = 0;
    double first_end = -1;
  };
  std::vector<RankClock> clocks(grid.ranks());
  // The border has arrived before any rank sends.
  TaskTable<double> end_of(grid.ranks(), microbatches, std::numeric_limits<double>::infinity(),
                           -costs.transfer);
  for (std::size_t slot = 0; slot < grid.slots(); ++slot) {
    for (std::size_t rank = 0; rank < grid.ranks(); ++rank) {
      const Pass pass = grid.at(rank, slot);
      if (pass == Pass::Nothing) continue;
      RankClock& clock = clocks[rank];
      const std::uint32_t microbatch = clock.counts[as_index(pass)]++;
      if (is_weight(pass)) {
        clock.now += costs.weight;
        continue;
      }
      clock.now = std::max(clock.now, end_of.input_of(rank, pass, microbatch) + costs.transfer);
      clock.now += is_forward(pass) ? costs.forward : costs.backward;
      if (clock.first_end < 0) clock.first_end = clock.now;
      end_of.at(rank, pass, microbatch) = clock.now;
    }
  }
  double span = 0;
  for (const RankClock& clock : clocks) {
    span = std::max(span, clock.now - clock.first_end + costs.forward);
  }
  return span;
}

PublishedOrders orders_of(const VGrid& grid) {
  PublishedOrders orders;
  for (std::size_t rank = 0; rank < grid.ranks(); ++rank) orders.push_back(order_of(grid, rank));
  return orders;
}

}  // namespace capo::schedules
