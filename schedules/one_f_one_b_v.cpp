// 1F1B on a V: the first chunk of each rank on the way down, the second on the way back, and whole
// backwards (Qi et al., Pipeline Parallelism with Controllable Memory, arXiv 2405.15362).
//
//   2 ranks, 2 microbatches (microbatch.chunk, both from 0)
//   rank 0:  F0.0 F1.0 F0.1 BW0.1 F1.1 BW1.1 BW0.0 BW1.0
//   rank 1:  F0.0 F0.1 F1.0 F1.1 BW0.1 BW0.0 BW1.1 BW1.0
//
// A building block of six slots a rank is repeated for each microbatch: a forward takes one slot, a
// backward two. Then every task, in the order of its slot, moves to the first free place that its
// inputs, the microbatch before it and the peak of the repeated block allow; only warm-up and
// cool-down find such a place.
//
// The order is that of the published program, token by token. It does not depend on the costs, and
// the block holds about two thirds of the memory of 1F1B whatever the limit of the setting.
// Tested by one_f_one_b_v_test.cpp.

#include "core/base/index.h"
#include "schedules/generators.h"
#include "schedules/setting_checks.h"
#include "schedules/v_pass.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

namespace capo::schedules {

namespace {

/// The grid begins with so many free slots before the first forward. The moves below use them up,
/// and the distance that a task can move decides the order.
constexpr std::size_t kLead = kPeriod + 1;

/// The slot of microbatch 0 of each pass.
using BlockTimes = std::array<std::size_t, kPasses>;

/// Follows microbatch 0 down the V and up, forward and backward. Every third backward waits three
/// slots, so that backwards fill the pairs of slots that forwards leave.
std::vector<BlockTimes> building_blocks(std::size_t ranks) {
  std::vector<BlockTimes> blocks(ranks);
  std::size_t slot = kLead;
  const auto down = [&](auto place) {
    for (std::size_t rank = 0; rank < ranks; ++rank) place(blocks[rank]);
  };
  const auto up = [&](auto place) {
    for (std::size_t rank = ranks; rank-- > 0;) place(blocks[rank]);
  };
  down([&](BlockTimes& block) { block[as_index(Pass::Forward1)] = slot++; });
  up([&](BlockTimes& block) { block[as_index(Pass::Forward2)] = slot++; });

  if (ranks % 3 == 0) slot += 3;
  std::size_t backwards = (2 * ranks + 1) % 3;
  const auto place_backward = [&](BlockTimes& block, Pass backward, Pass weight) {
    block[as_index(backward)] = slot;
    block[as_index(weight)] = slot + 1;
    slot += ++backwards % 3 == 0 ? std::size_t{5} : std::size_t{2};
  };
  down([&](BlockTimes& block) { place_backward(block, Pass::Backward2, Pass::Weight2); });
  up([&](BlockTimes& block) { place_backward(block, Pass::Backward1, Pass::Weight1); });
  return blocks;
}

/// A backward takes two slots, the second for its weight half.
constexpr Pass end_of(Pass pass) {
  if (pass == Pass::Backward1) return Pass::Weight1;
  if (pass == Pass::Backward2) return Pass::Weight2;
  return pass;
}

/// Keeps all ranks' slots, and the memory that each rank holds after each slot.
class Grid {
 public:
  Grid(std::size_t ranks, std::size_t microbatches)
      : ranks_(ranks), microbatches_(microbatches), slot_of_(ranks * kPasses * microbatches) {
    const std::vector<BlockTimes> blocks = building_blocks(ranks);
    width_ = *std::ranges::max_element(blocks[0]) + kPeriod * microbatches;
    for (const BlockTimes& block : blocks) add_row(block);
  }

  /// Moves every task as early as it can go, in the order of the slots.
  void compact() {
    std::vector<std::array<std::size_t, kPasses>> counts(ranks_);
    for (std::size_t slot = 0; slot < width_; ++slot) {
      for (std::size_t rank = 0; rank < ranks_; ++rank) {
        const Pass pass = cells_[rank][slot];
        if (pass == Pass::Nothing) continue;
        const std::size_t microbatch = counts[rank][as_index(pass)]++;
        slot_of(rank, pass, microbatch) = move_earlier(rank, pass, microbatch, slot);
      }
    }
  }

  [[nodiscard]] const std::vector<Pass>& row(std::size_t rank) const { return cells_[rank]; }

 private:
  void add_row(const BlockTimes& block) {
    std::vector<Pass> row(width_, Pass::Nothing);
    for (std::size_t pass = 0; pass < kPasses; ++pass) {
      for (std::size_t microbatch = 0; microbatch < microbatches_; ++microbatch) {
        row[block[pass] + kPeriod * microbatch] = static_cast<Pass>(pass);
      }
    }
    std::int64_t held = 0;
    std::vector<std::int64_t> held_after;
    for (const Pass pass : row) {
      held += held_by(pass);
      held_after.push_back(held);
      peak_ = std::max(peak_, held);
    }
    cells_.push_back(std::move(row));
    held_after_.push_back(std::move(held_after));
  }

  [[nodiscard]] std::size_t& slot_of(std::size_t rank, Pass pass, std::size_t microbatch) {
    return slot_of_[(rank * kPasses + as_index(pass)) * microbatches_ + microbatch];
  }

  /// The slot of the task that has to end before; a backward ends with its weight half.
  [[nodiscard]] std::optional<std::size_t> slot_of_input(std::size_t rank, Pass pass,
                                                         std::size_t microbatch) {
    if (goes_down(pass) && rank > 0) return slot_of(rank - 1, end_of(pass), microbatch);
    if (comes_up(pass) && rank + 1 < ranks_) return slot_of(rank + 1, end_of(pass), microbatch);
    if (pass == Pass::Forward1) return std::nullopt;
    const Pass input = local_input(pass);
    return slot_of(rank, is_weight(pass) ? input : end_of(input), microbatch);
  }

  [[nodiscard]] std::size_t earliest(std::size_t rank, Pass pass, std::size_t microbatch) {
    std::size_t after = 0;
    if (microbatch > 0) after = slot_of(rank, pass, microbatch - 1) + 1;
    if (const auto input = slot_of_input(rank, pass, microbatch)) {
      after = std::max(after, *input + 1);
    }
    return after;
  }

  [[nodiscard]] std::size_t move_earlier(std::size_t rank, Pass pass, std::size_t microbatch,
                                         std::size_t from) {
    std::size_t to = earliest(rank, pass, microbatch);
    if (is_forward(pass)) to = within_peak(rank, to, from);
    to = first_free(rank, pass, to, from);
    if (to == from) return from;
    std::swap(cells_[rank][to], cells_[rank][from]);
    for (std::size_t slot = to; slot < from; ++slot) held_after_[rank][slot] += held_by(pass);
    return to;
  }

  /// The first slot from `lowest` on that a forward can move to without a new peak.
  [[nodiscard]] std::size_t within_peak(std::size_t rank, std::size_t lowest,
                                        std::size_t from) const {
    std::size_t slot = from;
    while (slot > lowest && held_after_[rank][slot - 1] < peak_) --slot;
    return slot;
  }

  /// The first free slot from `slot` on, or `from`. A backward brings its weight half along and
  /// needs a pair; the slot that it leaves does not count as free.
  [[nodiscard]] std::size_t first_free(std::size_t rank, Pass pass, std::size_t slot,
                                       std::size_t from) const {
    const std::vector<Pass>& row = cells_[rank];
    while (slot < from &&
           (row[slot] != Pass::Nothing || (is_backward(pass) && row[slot + 1] != Pass::Nothing))) {
      ++slot;
    }
    return slot;
  }

  std::size_t ranks_;
  std::size_t microbatches_;
  std::size_t width_ = 0;
  std::int64_t peak_ = 0;  ///< the most chunks that any rank holds
  std::vector<std::vector<Pass>> cells_;
  std::vector<std::vector<std::int64_t>> held_after_;
  /// Indexed by rank, pass and microbatch; valid for tasks that have moved.
  std::vector<std::size_t> slot_of_;
};

std::vector<Move> order_of(const std::vector<Pass>& row) {
  std::array<std::int32_t, kPasses> counts = {};
  std::vector<Move> order;
  for (const Pass pass : row) {
    if (!is_forward(pass) && !is_backward(pass)) continue;
    order.push_back({.kind = is_forward(pass) ? Kind::Forward : Kind::Backward,
                     .chunk = chunk_of(pass),
                     .microbatch = counts[as_index(pass)]++});
  }
  return order;
}

}  // namespace

Generated one_f_one_b_v(const Setting& setting) {
  if (auto refusal = refuse_counts("1f1b-v", setting, 2)) return std::move(*refusal);
  const auto ranks = as_index(setting.ranks);
  Grid grid(ranks, as_index(setting.microbatches));
  grid.compact();
  PublishedOrders orders;
  for (std::size_t rank = 0; rank < ranks; ++rank) orders.push_back(order_of(grid.row(rank)));
  return orders;
}

}  // namespace capo::schedules
