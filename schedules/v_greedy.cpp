// V-Half and V-Min: building blocks on a V that hold a half and a third of the memory of 1F1B,
// after Qi et al., Pipeline Parallelism with Controllable Memory, arXiv 2405.15362, with the greedy
// reordering of zbv_greedy.py of sail-sg/zero-bubble-pipeline-parallelism.
//
//   V-Min, 2 ranks, rank 0:  F0.0 at slot 0, F0.1 at 3, B0.1 at 4, B0.0 at 7; microbatch 1 six
//   later
//
// A block places the forwards and the input halves of one microbatch, and every six slots the next
// begins. Weight halves fill the slots between. The tasks of warm-up and cool-down then move to the
// first free slot that their inputs and the peak of the repeated block allow, twice: first with the
// weight halves in place, then, in the cool-down, with weight halves that make way.
//
// The order is that of the published program, token by token. It does not depend on the costs; with
// a forward, an input half and a weight half that differ much, V-Min gains a bubble per microbatch.
// The memory limit is not looked at: v_adaptive.cpp searches within one.
// Tested by v_greedy_test.cpp.

#include "core/base/assert.h"
#include "core/base/index.h"
#include "schedules/generators.h"
#include "schedules/setting_checks.h"
#include "schedules/v_pass.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <utility>

namespace capo::schedules {

namespace {

using Slot = std::size_t;
/// The slots of one rank, indexed by pass, then by microbatch, ascending. While the weight halves
/// of both chunks are one queue, all of them are Weight2.
using RankSlots = std::array<std::vector<Slot>, kPasses>;
using AllSlots = std::vector<RankSlots>;
/// One rank's passes, indexed by slot.
using Row = std::vector<Pass>;

std::vector<Slot>& slots_of(RankSlots& rank, Pass pass) {
  return rank[as_index(pass)];
}
const std::vector<Slot>& slots_of(const RankSlots& rank, Pass pass) {
  return rank[as_index(pass)];
}

/// The slots of microbatch 0 on one rank, in the order of kChain.
using SlotBlock = std::array<Slot, kChain.size()>;

/// V-Min has the smallest lifespans there are: every step of the way takes one slot.
SlotBlock min_block(Slot ranks, Slot rank) {
  const Slot pause = ranks % 3 == 0 ? 2 : 0;
  return {rank, 2 * ranks - rank - 1, 2 * ranks + pause + rank, 4 * ranks + pause - rank - 1};
}

/// V-Half takes two slots a rank on the way down and one on the way up.
SlotBlock half_block(Slot ranks, Slot rank) {
  const Slot pause = ranks % 2 == 0 ? 3 : 0;
  return {2 * rank, 3 * ranks - rank - 2, 3 * ranks + pause + 2 * rank - 1,
          6 * ranks + pause - rank - 2};
}

AllSlots repeat(SlotBlock (*block)(Slot ranks, Slot rank), Slot ranks, Slot microbatches) {
  AllSlots all(ranks);
  for (Slot rank = 0; rank < ranks; ++rank) {
    const SlotBlock first = block(ranks, rank);
    for (const Pass pass : kChain) {
      for (Slot microbatch = 0; microbatch < microbatches; ++microbatch) {
        slots_of(all[rank], pass).push_back(first[as_index(pass)] + kPeriod * microbatch);
      }
    }
  }
  return all;
}

Row row_of(const RankSlots& rank) {
  Slot end = 0;
  for (const std::vector<Slot>& slots : rank) {
    if (!slots.empty()) end = std::max(end, slots.back() + 1);
  }
  Row row(end, Pass::Nothing);
  for (std::size_t pass = 0; pass < kPasses; ++pass) {
    for (const Slot slot : rank[pass]) {
      CAPO_ASSERT(row[slot] == Pass::Nothing, "two tasks of a rank never share a slot");
      row[slot] = static_cast<Pass>(pass);
    }
  }
  return row;
}

void drop_weights(RankSlots& rank) {
  slots_of(rank, Pass::Weight1).clear();
  slots_of(rank, Pass::Weight2).clear();
}

enum class WeightQueues { One, ByChunk };

/// Puts a waiting weight half into every free slot, those of chunk 2 first, and the rest at the
/// end.
void fill_in_weights(RankSlots& rank, WeightQueues queues) {
  const Row row = row_of(rank);
  std::array<std::size_t, 2> waiting = {};
  constexpr std::array kQueues = {Pass::Weight2, Pass::Weight1};
  const auto put = [&](Slot slot) {
    const std::size_t queue = waiting[0] > 0 ? 0 : 1;
    if (waiting[queue] == 0) return false;
    --waiting[queue];
    slots_of(rank, kQueues[queue]).push_back(slot);
    return true;
  };
  for (Slot slot = 0; slot < row.size(); ++slot) {
    if (row[slot] == Pass::Nothing) {
      put(slot);
    } else if (is_backward(row[slot])) {
      const bool second_queue = queues == WeightQueues::ByChunk && row[slot] == Pass::Backward1;
      ++waiting[second_queue ? 1 : 0];
    }
  }
  for (Slot slot = row.size(); put(slot); ++slot) {
  }
}

struct Task {
  Slot slot = 0;
  std::size_t rank = 0;
  Pass pass = Pass::Nothing;
  std::size_t microbatch = 0;
};

/// All tasks in the order of their slots, and of their ranks within a slot: counted and not sorted,
/// since there are about as many slots as a rank has tasks.
std::vector<Task> tasks_of(const AllSlots& all) {
  std::vector<std::size_t> place;  // by slot: of its first task, once they are added up
  for (const RankSlots& rank : all) {
    for (const std::vector<Slot>& slots : rank) {
      for (const Slot slot : slots) {
        if (slot + 2 > place.size()) place.resize(slot + 2, 0);
        ++place[slot + 1];
      }
    }
  }
  std::partial_sum(place.begin(), place.end(), place.begin());
  std::vector<Task> tasks(place.empty() ? 0 : place.back());
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    for (std::size_t pass = 0; pass < kPasses; ++pass) {
      for (std::size_t microbatch = 0; microbatch < all[rank][pass].size(); ++microbatch) {
        const Slot slot = all[rank][pass][microbatch];
        tasks[place[slot]++] = {
            .slot = slot, .rank = rank, .pass = static_cast<Pass>(pass), .microbatch = microbatch};
      }
    }
  }
  return tasks;
}

/// The first slot after the task's inputs and the microbatch before it. A weight half's input is
/// not among them, since it is the oldest backward that waits, of either chunk.
Slot after_inputs(const AllSlots& all, const Task& task) {
  const std::size_t microbatch = task.microbatch;
  Slot slot = 0;
  const auto wait_for = [&](std::size_t rank, Pass pass, std::size_t number) {
    slot = std::max(slot, slots_of(all[rank], pass)[number] + 1);
  };
  if (goes_down(task.pass) && task.rank > 0) wait_for(task.rank - 1, task.pass, microbatch);
  if (comes_up(task.pass) && task.rank + 1 < all.size()) {
    wait_for(task.rank + 1, task.pass, microbatch);
  }
  if (task.pass != Pass::Forward1 && !is_weight(task.pass)) {
    wait_for(task.rank, local_input(task.pass), microbatch);
  }
  if (microbatch > 0) wait_for(task.rank, task.pass, microbatch - 1);
  return slot;
}

/// The slot after the backward that comes `number`-th on its rank.
Slot after_backward(const RankSlots& rank, std::size_t number) {
  const std::vector<Slot>& chunk2 = slots_of(rank, Pass::Backward2);
  const std::vector<Slot>& chunk1 = slots_of(rank, Pass::Backward1);
  const auto run_before = [](const std::vector<Slot>& slots, Slot slot) {
    return as_index(std::ranges::lower_bound(slots, slot) - slots.begin());
  };
  Slot first = 0;
  for (Slot last = std::max(chunk1.back(), chunk2.back()) + 1; first < last;) {
    const Slot slot = std::midpoint(first, last);
    const bool has_run = run_before(chunk2, slot) + run_before(chunk1, slot) > number;
    (has_run ? last : first) = has_run ? slot : slot + 1;
  }
  return first;
}

/// Gives every task the slot at which it starts when all tasks take one slot and wait for nothing
/// but their inputs and the task before them.
AllSlots squeeze(const AllSlots& all) {
  AllSlots squeezed = all;
  std::vector<Slot> free_from(all.size(), 0);
  for (const Task& task : tasks_of(all)) {
    Slot& slot = slots_of(squeezed[task.rank], task.pass)[task.microbatch];
    slot = std::max(after_inputs(squeezed, task), free_from[task.rank]);
    free_from[task.rank] = slot + 1;
  }
  return squeezed;
}

enum class WeightsWhileMoving { Placed, MakingWay };

/// One rank's chunks in memory, slot by slot, where weight halves that make way run in free slots.
/// Answers whether a task can move without going beyond a limit.
class RankMemory {
 public:
  RankMemory(const RankSlots& rank, WeightsWhileMoving weights)
      : row_(row_of(rank)), weights_(weights) {
    for (const Pass pass : row_) {
      before_.push_back(after(before_.back(), pass));
      peak_ = std::max(peak_, before_.back().held);
    }
  }

  /// The most chunks before anything was moved.
  [[nodiscard]] std::int64_t peak() const { return peak_; }

  [[nodiscard]] bool is_free(Slot slot) const { return row_[slot] == Pass::Nothing; }

  [[nodiscard]] bool fits(Slot from, Slot to, std::int64_t limit) {
    std::swap(row_[from], row_[to]);
    const bool within = stays_within(limit, to, from);
    std::swap(row_[from], row_[to]);
    return within;
  }

  void move(Slot from, Slot to) {
    std::swap(row_[from], row_[to]);
    State state = before_[to];
    for (Slot slot = to; slot < row_.size(); ++slot) {
      if (slot > from && state == before_[slot]) return;
      before_[slot] = state;
      state = after(state, row_[slot]);
    }
    before_.back() = state;
  }

 private:
  struct State {
    std::int64_t held = 0;
    std::int64_t waiting = 0;  ///< counts the weight halves that are not placed

    friend bool operator==(const State&, const State&) = default;
  };

  [[nodiscard]] State after(State state, Pass pass) const {
    state.held += held_by(pass);
    if (is_backward(pass) && weights_ == WeightsWhileMoving::MakingWay) ++state.waiting;
    if (pass == Pass::Nothing && state.waiting > 0) {
      --state.held;
      --state.waiting;
    }
    return state;
  }

  /// Starts again at `slot`. Slots behind `last` need no second look once the state there is as
  /// before.
  [[nodiscard]] bool stays_within(std::int64_t limit, Slot slot, Slot last) const {
    State state = before_[slot];
    for (; slot < row_.size(); ++slot) {
      if (slot > last && state == before_[slot]) return true;
      state = after(state, row_[slot]);
      if (state.held > limit) return false;
    }
    return true;
  }

  Row row_;
  WeightsWhileMoving weights_;
  std::vector<State> before_{State{}};
  std::int64_t peak_ = 0;
};

/// Moves the tasks of warm-up and cool-down to earlier slots, in the order of their slots.
class Reordering {
 public:
  Reordering(AllSlots all, WeightsWhileMoving weights) : all_(std::move(all)), weights_(weights) {
    for (RankSlots& rank : all_) {
      if (weights_ == WeightsWhileMoving::Placed) fill_in_weights(rank, WeightQueues::One);
      memory_.emplace_back(rank, weights_);
      limit_ = std::max(limit_, memory_.back().peak());
    }
  }

  [[nodiscard]] AllSlots run() {
    for (const Task& task : tasks_of(all_)) {
      if (may_move(task)) move(task);
    }
    for (RankSlots& rank : all_) {
      if (weights_ == WeightsWhileMoving::MakingWay) fill_in_weights(rank, WeightQueues::One);
    }
    AllSlots squeezed = squeeze(all_);
    for (RankSlots& rank : squeezed) drop_weights(rank);
    return squeezed;
  }

 private:
  enum class Phase { WarmUp, Steady, CoolDown };

  /// The steady phase is from the first backward that ends a microbatch to the last forward that
  /// begins one. Weight halves that make way would do so in the warm-up for nothing.
  [[nodiscard]] bool may_move(const Task& task) {
    if (phase_ == Phase::WarmUp && task.pass == Pass::Backward1 && task.rank == 0) {
      phase_ = Phase::Steady;
    }
    if (phase_ == Phase::Steady) {
      const std::size_t last = slots_of(all_[0], Pass::Forward1).size() - 1;
      if (task.pass == Pass::Forward1 && task.microbatch == last) phase_ = Phase::CoolDown;
      return false;
    }
    return phase_ == Phase::CoolDown || weights_ == WeightsWhileMoving::Placed;
  }

  void move(const Task& task) {
    RankMemory& memory = memory_[task.rank];
    for (Slot slot = earliest(task); slot < task.slot; ++slot) {
      if (!memory.is_free(slot) || !memory.fits(task.slot, slot, limit_)) continue;
      memory.move(task.slot, slot);
      slots_of(all_[task.rank], task.pass)[task.microbatch] = slot;
      return;
    }
  }

  [[nodiscard]] Slot earliest(const Task& task) const {
    const Slot slot = after_inputs(all_, task);
    if (!is_weight(task.pass)) return slot;
    return std::max(slot, after_backward(all_[task.rank], task.microbatch));
  }

  AllSlots all_;
  WeightsWhileMoving weights_;
  std::vector<RankMemory> memory_;
  std::int64_t limit_ = 0;  ///< the most chunks that any rank may hold
  Phase phase_ = Phase::WarmUp;
};

PublishedOrders orders_of_blocks(SlotBlock (*block)(Slot ranks, Slot rank),
                                 const Setting& setting) {
  AllSlots all =
      repeat(block, static_cast<Slot>(setting.ranks), static_cast<Slot>(setting.microbatches));
  all = Reordering(std::move(all), WeightsWhileMoving::Placed).run();
  all = Reordering(std::move(all), WeightsWhileMoving::MakingWay).run();
  for (RankSlots& rank : all) fill_in_weights(rank, WeightQueues::ByChunk);
  PublishedOrders orders(all.size());
  for (const Task& task : tasks_of(all)) {
    orders[task.rank].push_back(move_of(task.pass, task.microbatch));
  }
  return orders;
}

}  // namespace

Generated v_half(const Setting& setting) {
  if (auto refusal = refuse_counts("v-half", setting, 2)) return std::move(*refusal);
  return orders_of_blocks(half_block, setting);
}

Generated v_min(const Setting& setting) {
  if (auto refusal = refuse_counts("v-min", setting, 2)) return std::move(*refusal);
  return orders_of_blocks(min_block, setting);
}

}  // namespace capo::schedules
