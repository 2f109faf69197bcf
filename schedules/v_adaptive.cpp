// A V schedule within a memory limit: of all building blocks on a V that keep the limit, the one
// whose order takes the least time, after Qi et al., Pipeline Parallelism with Controllable Memory,
// arXiv 2405.15362, and v_auto_schedule.py of sail-sg/zero-bubble-pipeline-parallelism.
//
//   4 ranks, limit of 2 microbatches    the memory of V-Min, and what that costs
//                    4 microbatches    the memory of 1F1B and nearly no bubble
//
// Every rank holds a chunk from its forward to its weight half, whatever the setting says that the
// input half gives back; the limit is counted in chunks. More than two for every rank are never
// used. The order is that of the published program, which tries the same blocks in the same way:
// the first of the shortest, by the time from a rank's first start to its last end. It is not the
// shortest there is: where costs differ much, no block of six equal slots fits them well.
//
// Time grows with the ranks and the limit: 32 ranks without a limit are about two thousand blocks
// and a second, shared by the setting's threads. Tested by v_adaptive_test.cpp.

#include "core/base/in_parallel.h"
#include "core/base/index.h"
#include "schedules/generators.h"
#include "schedules/setting_checks.h"
#include "schedules/v_block.h"
#include "schedules/v_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace capo::schedules {

namespace {

/// The limit in chunks. A limit that was divided among chunks and comes out a hair below a whole
/// number means that number.
std::int64_t chunks_within(const Setting& setting) {
  const std::int64_t most = 2 * std::int64_t{setting.ranks};
  if (setting.memory.forward <= 0) return most;
  constexpr double kHair = 1e-9;
  const double chunks = std::floor(setting.memory_limit / setting.memory.forward + kHair);
  return chunks < static_cast<double>(most) ? static_cast<std::int64_t>(std::max(chunks, 0.0))
                                            : most;
}

/// The first of the shortest of some blocks.
struct Shortest {
  std::optional<VGrid> grid;
  double span = 0;
  std::size_t more = 0;  ///< it is to be made longer by so many microbatches

  void take(Shortest other) {
    if (other.grid && (!grid || other.span < span)) *this = std::move(other);
  }
};

/// Tries the blocks that begin with one rank.
class Search {
 public:
  /// `least`: the shortest that any search has found. What is longer is given up, and is not the
  /// first of the shortest, however far the others are.
  Search(const Setting& setting, std::int64_t limit, std::atomic<double>& least)
      : ranks_(as_index(setting.ranks)),
        microbatches_(as_index(setting.microbatches)),
        costs_(setting.costs),
        limit_(limit),
        least_(least) {}

  [[nodiscard]] Shortest run(const PassSlots& first_rank) {
    for (std::size_t before = 1; before <= kLongestStep; ++before) {
      for (std::size_t after = 1; after < before; ++after) {
        try_mixed(first_rank, before, after);
      }
      try_block(first_rank, {.before = before, .after = before});
    }
    return std::move(best_);
  }

 private:
  enum class Memory { Within, Beyond };

  /// The more ranks take the longer step, the longer a microbatch stays.
  void try_mixed(const PassSlots& first_rank, std::size_t before, std::size_t after) {
    for (std::size_t ranks_before = 1; ranks_before < ranks_; ++ranks_before) {
      const Steps steps = {.before = before, .after = after, .ranks_before = ranks_before};
      if (try_block(first_rank, steps) == Memory::Beyond) return;
    }
  }

  Memory try_block(const PassSlots& first_rank, const Steps& steps) {
    const std::optional<Block> block = block_of(first_rank, steps, ranks_);
    if (!block) return Memory::Within;
    const std::vector<PassSlots> slots = first_slots(*block);
    // Many microbatches repeat what fewer show: their warm-up and cool-down do not meet.
    const std::size_t telling = std::min(microbatches_, 3 * ranks_);
    std::size_t more = microbatches_ - telling;
    Reordered reordered = reorder(slots, telling, limit_);
    std::optional<double> span;
    if (reordered.grid) span = span_of_longer(*reordered.grid, telling, more, costs_, least_);
    if (reordered.grid && !span) {
      more = 0;
      reordered = reorder(slots, microbatches_, limit_);
      if (reordered.grid) span = span_of(*reordered.grid, microbatches_, costs_);
    }
    if (reordered.peak > limit_) return Memory::Beyond;
    if (span) {
      lower_least(*span);
      best_.take({.grid = std::move(reordered.grid), .span = *span, .more = more});
    }
    return Memory::Within;
  }

  void lower_least(double span) {
    double least = least_;
    while (span < least && !least_.compare_exchange_weak(least, span)) {
    }
  }

  std::size_t ranks_;
  std::size_t microbatches_;
  Costs costs_;
  std::int64_t limit_;  ///< counted in chunks
  std::atomic<double>& least_;
  Shortest best_;
};

std::optional<VGrid> shortest(const Setting& setting, std::int64_t limit) {
  const std::vector<PassSlots> firsts = first_ranks();
  std::vector<Shortest> found(firsts.size());
  std::atomic<double> least = std::numeric_limits<double>::infinity();
  in_parallel(firsts.size(), setting.threads,
              [&](std::size_t i) { found[i] = Search(setting, limit, least).run(firsts[i]); });
  Shortest best;
  for (Shortest& each : found) best.take(std::move(each));
  if (best.grid && best.more > 0) return lengthen(*best.grid, best.more);
  return std::move(best.grid);
}

}  // namespace

Generated v_adaptive(const Setting& setting) {
  if (auto refusal = refuse_counts("v-adaptive", setting, 2)) return std::move(*refusal);
  if (auto refusal = refuse_rank_costs("v-adaptive", setting)) return std::move(*refusal);
  if (setting.ranks < 2) return std::string("v-adaptive needs two ranks at least, not 1");
  const std::int64_t limit = chunks_within(setting);
  const std::optional<VGrid> best = shortest(setting, limit);
  if (!best) {
    return fmt::format("no V of building blocks fits {} chunks of memory on {} ranks", limit,
                       setting.ranks);
  }
  return orders_of(*best);
}

}  // namespace capo::schedules
