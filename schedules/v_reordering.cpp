// From a building block on a V to the order of every rank: repeat the block for each microbatch,
// then rearrange its warm-up and its cool-down, after Qi et al., Pipeline Parallelism with
// Controllable Memory, arXiv 2405.15362, section 3 and appendix.
//
//   repeated      F . F . F f F . f B W f B W ...         six slots a microbatch, gaps at both ends
//   warm-up       as many forwards as the peak allows, then backwards with a forward in between
//   cool-down     the last backwards as tight as their chains allow, weight halves behind them
//   gaps          each takes the nearest later task whose inputs are there, within the peak
//
// Everything here counts slots of equal length, as the published program does; costs come in only
// where the finished grid is timed. A steady block has no gaps, so that its middle stays as it is,
// and a grid of many microbatches is that of fewer with its middle repeated (v_grid.h).
// Tested by v_reordering_test.cpp.

#include "core/base/index.h"
#include "schedules/v_block.h"
#include "schedules/v_grid.h"

#include "core/base/assert.h"

#include <algorithm>
#include <array>
#include <utility>

namespace capo::schedules {

namespace {

VGrid repeat(const std::vector<PassSlots>& first_slots, std::size_t microbatches) {
  std::size_t end = 0;
  for (const PassSlots& rank : first_slots) {
    end = std::max(end, *std::ranges::max_element(rank) + kPeriod * (microbatches - 1) + 1);
  }
  VGrid grid(first_slots.size(), end);
  for (std::size_t rank = 0; rank < grid.ranks(); ++rank) {
    for (std::size_t pass = 0; pass < kPasses; ++pass) {
      for (std::size_t microbatch = 0; microbatch < microbatches; ++microbatch) {
        grid.at(rank, first_slots[rank].at(pass) + kPeriod * microbatch) = static_cast<Pass>(pass);
      }
    }
  }
  return grid;
}

/// Puts a task into an empty slot; false if the slot is not empty or not there.
[[nodiscard]] bool put(VGrid& grid, std::size_t rank, std::size_t slot, Pass pass) {
  if (slot >= grid.slots() || grid.at(rank, slot) != Pass::Nothing) return false;
  grid.at(rank, slot) = pass;
  return true;
}

/// Rearranges what one rank does before its first Backward1.
class WarmUp {
 public:
  WarmUp(VGrid& grid, std::size_t rank) : grid_(grid), rank_(rank), slot_(rank) {
    for (std::size_t slot = 0; slot < grid.slots(); ++slot) {
      Pass& pass = grid.at(rank, slot);
      if (pass == Pass::Backward1) break;
      if (pass != Pass::Nothing) ++left_[as_index(pass)];
      pass = Pass::Nothing;
    }
  }

  /// Runs first forwards until the second ones arrive, then both in turn, one of each for every
  /// rank on the way, and then backwards, their weight halves and a forward in the room that each
  /// makes.
  [[nodiscard]] bool run(std::size_t peak, std::size_t microbatches) {
    std::size_t second = std::min({rank_ + 1, peak / 2, microbatches});
    std::size_t first = std::min(peak - second, microbatches);
    for (std::size_t i = 0; i < 2 * (grid_.ranks() - 1 - rank_); ++i) {
      put_ahead(Pass::Forward1, first);
    }
    for (std::size_t i = 0; i <= rank_; ++i) {
      put_ahead(Pass::Forward1, first);
      put_ahead(Pass::Forward2, second);
    }
    while (is_any_left()) {
      put_next(Pass::Backward2);
      ++slot_;
      put_next(Pass::Weight2);
      ++slot_;
      if (!put_next(Pass::Forward2)) put_next(Pass::Forward1);
      ++slot_;
    }
    return possible_;
  }

 private:
  void put_ahead(Pass pass, std::size_t& wanted) {
    if (wanted > 0 && put_next(pass)) --wanted;
    ++slot_;
  }

  bool put_next(Pass pass) {
    if (left_[as_index(pass)] == 0) return false;
    --left_[as_index(pass)];
    possible_ = put(grid_, rank_, slot_, pass) && possible_;
    return true;
  }

  [[nodiscard]] bool is_any_left() const {
    return std::ranges::any_of(left_, [](std::uint32_t count) { return count > 0; });
  }

  VGrid& grid_;
  std::size_t rank_;
  std::size_t slot_;
  Counts left_ = {};
  bool possible_ = true;
};

[[nodiscard]] bool rearrange_warm_up(VGrid& grid, std::size_t microbatches, std::int64_t peak) {
  for (std::size_t rank = 0; rank < grid.ranks(); ++rank) {
    if (!WarmUp(grid, rank).run(as_index(peak), microbatches)) return false;
  }
  return true;
}

void drop_microbatches_from(VGrid& grid, std::size_t microbatches) {
  std::vector<Counts> counts(grid.ranks());
  for (std::size_t slot = 0; slot < grid.slots(); ++slot) {
    for (std::size_t rank = 0; rank < grid.ranks(); ++rank) {
      Pass& pass = grid.at(rank, slot);
      if (pass == Pass::Nothing) continue;
      if (counts[rank][as_index(pass)]++ >= microbatches) pass = Pass::Nothing;
    }
  }
}

/// Adds slots at the end and puts each rank's remaining tasks there.
void append(VGrid& grid, const std::vector<std::vector<Pass>>& rest) {
  std::size_t longest = 0;
  for (const std::vector<Pass>& passes : rest) longest = std::max(longest, passes.size());
  const std::size_t begin = grid.slots();
  grid.resize(begin + longest);
  for (std::size_t rank = 0; rank < rest.size(); ++rank) {
    for (std::size_t i = 0; i < rest[rank].size(); ++i) grid.at(rank, begin + i) = rest[rank][i];
  }
}

/// Weight halves move to the end as long as their rank stays within the peak: with few microbatches
/// there is memory left, and forwards and backwards come sooner.
void postpone_weights(VGrid& grid, std::int64_t peak) {
  const std::vector<std::int64_t> peaks = peaks_of(grid);
  std::vector<std::vector<Pass>> postponed(grid.ranks());
  for (std::size_t rank = 0; rank < grid.ranks(); ++rank) {
    std::int64_t room = peak - peaks[rank];
    for (std::size_t slot = 0; slot < grid.slots() && room > 0; ++slot) {
      if (!is_weight(grid.at(rank, slot))) continue;
      postponed[rank].push_back(std::exchange(grid.at(rank, slot), Pass::Nothing));
      --room;
    }
  }
  append(grid, postponed);
}

/// Rearranges what a rank does after the last Forward2 of rank 0, which is in slot `turn`.
class CoolDown {
 public:
  CoolDown(VGrid& grid, std::size_t rank, std::size_t turn)
      : grid_(grid), rank_(rank), turn_(turn) {}

  /// The last backwards of each chunk stand every other slot, each rank one after its neighbour.
  [[nodiscard]] bool run(std::size_t peak, std::size_t microbatches) {
    const std::size_t most1 = std::min((peak + 1) / 2, microbatches);
    const std::size_t most2 = std::min({peak - most1, microbatches, rank_ + 1});
    const std::size_t backwards1 = take_last(Pass::Backward1, most1);
    const std::size_t backwards2 = take_last(Pass::Backward2, most2);
    take_last_weights(peak, backwards1, backwards2);
    return put_back(Pass::Backward1, backwards1, turn_ + 2 * grid_.ranks() - rank_) &&
           put_back(Pass::Backward2, backwards2, turn_ + 1 + rank_);
  }

  /// Fills the empty slots after the last remaining weight half with the weight halves that were
  /// taken out, chunk 2 first, and returns those for which there is no slot.
  [[nodiscard]] std::vector<Pass> put_weights_back() {
    std::size_t begin = grid_.slots();
    while (begin > 0 && !is_weight(grid_.at(rank_, begin - 1))) {
      --begin;
      if (const Pass pass = grid_.at(rank_, begin); is_backward(pass)) --weights(weight_of(pass));
    }
    for (std::size_t slot = begin; slot < grid_.slots(); ++slot) {
      Pass& pass = grid_.at(rank_, slot);
      if (is_backward(pass)) ++weights(weight_of(pass));
      if (pass == Pass::Nothing) pass = next_weight();
    }
    std::vector<Pass> rest;
    for (Pass pass = next_weight(); pass != Pass::Nothing; pass = next_weight()) {
      rest.push_back(pass);
    }
    return rest;
  }

 private:
  static Pass weight_of(Pass backward) {
    return backward == Pass::Backward1 ? Pass::Weight1 : Pass::Weight2;
  }

  /// The weight halves that can be put back.
  std::int64_t& weights(Pass pass) { return pass == Pass::Weight1 ? weights1_ : weights2_; }

  std::size_t take_last(Pass pass, std::size_t most) {
    std::size_t taken = 0;
    for (std::size_t slot = grid_.slots(); slot-- > 0 && taken < most;) {
      if (grid_.at(rank_, slot) != pass) continue;
      grid_.at(rank_, slot) = Pass::Nothing;
      ++taken;
    }
    return taken;
  }

  /// Takes out as many weight halves as fill the peak, and at least those of the backwards that
  /// were taken out.
  void take_last_weights(std::size_t peak, std::size_t backwards1, std::size_t backwards2) {
    const auto enough = [&] {
      return weights1_ >= static_cast<std::int64_t>(backwards1) &&
             weights2_ >= static_cast<std::int64_t>(backwards2) &&
             weights1_ + weights2_ >= static_cast<std::int64_t>(peak);
    };
    for (std::size_t slot = grid_.slots(); slot-- > 0 && !enough();) {
      Pass& pass = grid_.at(rank_, slot);
      if (!is_weight(pass)) continue;
      ++weights(pass);
      pass = Pass::Nothing;
    }
  }

  [[nodiscard]] bool put_back(Pass pass, std::size_t count, std::size_t last_slot) {
    if (count > 0 && last_slot < 2 * (count - 1)) return false;
    for (std::size_t i = 0; i < count; ++i) {
      if (!put(grid_, rank_, last_slot - 2 * i, pass)) return false;
    }
    return true;
  }

  Pass next_weight() {
    for (const Pass pass : {Pass::Weight2, Pass::Weight1}) {
      if (weights(pass) <= 0) continue;
      --weights(pass);
      return pass;
    }
    return Pass::Nothing;
  }

  VGrid& grid_;
  std::size_t rank_;
  std::size_t turn_;
  std::int64_t weights1_ = 0;
  std::int64_t weights2_ = 0;
};

[[nodiscard]] bool rearrange_cool_down(VGrid& grid, std::size_t microbatches, std::int64_t peak) {
  std::size_t after_turn = grid.slots();
  while (after_turn > 0 && grid.at(0, after_turn - 1) != Pass::Forward2) --after_turn;
  CAPO_ASSERT(after_turn > 0, "rank 0 has a forward of its second chunk");
  std::vector<std::vector<Pass>> rest(grid.ranks());
  for (std::size_t rank = 0; rank < grid.ranks(); ++rank) {
    CoolDown cool_down(grid, rank, after_turn - 1);
    if (!cool_down.run(as_index(peak), microbatches)) return false;
    rest[rank] = cool_down.put_weights_back();
  }
  append(grid, rest);
  return true;
}

/// Goes through the slots and fills those that are empty.
class GapFilling {
 public:
  GapFilling(VGrid& grid, std::size_t microbatches, std::int64_t peak)
      : grid_(grid),
        microbatches_(microbatches),
        peak_(peak),
        ranks_(grid.ranks()),
        end_of_(grid.ranks(), microbatches, kNotYet, 0) {}

  /// Returns the peak of the result, which may have become lower.
  std::int64_t run() {
    std::int64_t peak = 0;
    for (std::size_t slot = 0; slot < grid_.slots(); ++slot) {
      for (std::size_t rank = 0; rank < grid_.ranks(); ++rank) {
        if (grid_.at(rank, slot) == Pass::Nothing) {
          std::swap(grid_.at(rank, slot), grid_.at(rank, slot_to_take(rank, slot)));
        }
        const Pass pass = grid_.at(rank, slot);
        if (pass == Pass::Nothing) continue;
        RankState& state = ranks_[rank];
        end_of_.at(rank, pass, state.counts[as_index(pass)]++) =
            static_cast<std::uint32_t>(slot + 1);
        state.held += held_by(pass);
        peak = std::max(peak, state.held);
      }
    }
    return peak;
  }

 private:
  struct RankState {
    Counts counts = {};
    std::int64_t held = 0;
  };

  /// The nearest later slot whose task could run in `slot`; `slot` itself if there is none.
  [[nodiscard]] std::size_t slot_to_take(std::size_t rank, std::size_t slot) const {
    const RankState& state = ranks_[rank];
    std::array<bool, kPasses + 1> ready = {};  // an empty slot is never ready
    std::size_t passes_ready = 0;
    for (std::size_t pass = 0; pass < kPasses; ++pass) {
      ready[pass] = is_ready(rank, static_cast<Pass>(pass), slot);
      if (ready[pass]) ++passes_ready;
    }
    std::int64_t held = state.held;
    std::int64_t peak_between = held;
    for (std::size_t from = slot + 1; from < grid_.slots() && passes_ready > 0; ++from) {
      const Pass pass = grid_.at(rank, from);
      if (std::exchange(ready[as_index(pass)], false)) {
        if (!is_forward(pass) || peak_between < peak_) return from;
        --passes_ready;
      }
      held += held_by(pass);
      peak_between = std::max(peak_between, held);
    }
    return slot;
  }

  [[nodiscard]] bool is_ready(std::size_t rank, Pass pass, std::size_t slot) const {
    const RankState& state = ranks_[rank];
    const std::uint32_t microbatch = state.counts[as_index(pass)];
    if (microbatch >= microbatches_ || (is_forward(pass) && state.held >= peak_)) return false;
    if (end_of_.input_of(rank, pass, microbatch) > slot) return false;
    return !turns_at(rank, grid_.ranks(), pass) ||
           state.counts[as_index(local_input(pass))] > microbatch;
  }

  VGrid& grid_;
  std::size_t microbatches_;
  std::int64_t peak_;
  std::vector<RankState> ranks_;
  SlotTable end_of_;
};

/// Repeats the block and rearranges its warm-up, for so many microbatches that warm-up and
/// cool-down do not touch; then keeps the wanted microbatches.
Reordered warm_up(const std::vector<PassSlots>& first_slots, std::size_t microbatches,
                  std::int64_t limit) {
  const std::size_t ranks = first_slots.size();
  const auto most = static_cast<std::int64_t>(2 * ranks);
  const std::size_t enough = std::max(microbatches, 2 * ranks);
  const std::int64_t block_peak = peak_of(first_slots);
  if (block_peak > most || (microbatches == enough && block_peak > limit))
    return {.peak = block_peak};

  VGrid grid = repeat(first_slots, enough);
  if (!rearrange_warm_up(grid, enough, block_peak)) return {.peak = block_peak};
  std::optional<VGrid> squeezed = squeeze(grid, enough);
  if (!squeezed) return {.peak = block_peak};
  std::int64_t peak = peak_of(*squeezed);
  if (peak > block_peak) return {.peak = block_peak};
  if (microbatches == enough) return {.grid = std::move(squeezed), .peak = block_peak};

  drop_microbatches_from(*squeezed, microbatches);
  const auto all_chunks = static_cast<std::int64_t>(2 * microbatches);
  if (microbatches <= ranks && all_chunks <= limit) postpone_weights(*squeezed, peak);
  squeezed = squeeze(*squeezed, microbatches);
  if (!squeezed) return {.peak = block_peak};
  peak = peak_of(*squeezed);
  if (peak > limit) return {.peak = peak};
  return {.grid = std::move(squeezed), .peak = peak};
}

}  // namespace

Reordered reorder(const std::vector<PassSlots>& first_slots, std::size_t microbatches,
                  std::int64_t limit) {
  Reordered reordered = warm_up(first_slots, microbatches, limit);
  if (!reordered.grid) return reordered;
  VGrid& grid = *reordered.grid;
  if (!rearrange_cool_down(grid, microbatches, peak_of(grid))) return {.peak = reordered.peak};
  std::optional<VGrid> squeezed = squeeze(grid, microbatches);
  if (!squeezed) return {.peak = reordered.peak};
  const std::int64_t peak = GapFilling(*squeezed, microbatches, peak_of(*squeezed)).run();
  if (peak > reordered.peak) return {.peak = reordered.peak};
  return {.grid = std::move(squeezed), .peak = peak};
}

}  // namespace capo::schedules
