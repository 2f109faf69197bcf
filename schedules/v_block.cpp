#include "schedules/v_block.h"

#include <algorithm>
#include <utility>

namespace capo::schedules {

namespace {

PassSlots with_weights(PassSlots slots) {
  std::array<bool, kPeriod> taken = {};
  for (const Pass pass : kChain) taken.at(slots.at(as_index(pass))) = true;
  for (const Pass weight : {Pass::Weight2, Pass::Weight1}) {
    std::size_t slot = slots.at(as_index(local_input(weight)));
    while (taken.at(slot)) slot = (slot + 1) % kPeriod;
    taken.at(slot) = true;
    slots.at(as_index(weight)) = slot;
  }
  return slots;
}

std::optional<PassSlots> next_rank(const PassSlots& slots, std::size_t step) {
  PassSlots next = {};
  std::array<bool, kPeriod> taken = {};
  for (const Pass pass : kChain) {
    const std::size_t later = goes_down(pass) ? step : kPeriod - 1;
    const std::size_t slot = (slots.at(as_index(pass)) + later) % kPeriod;
    if (std::exchange(taken.at(slot), true)) return std::nullopt;
    next.at(as_index(pass)) = slot;
  }
  return with_weights(next);
}

/// The first slot at or after `from` that is `wanted` in its period.
std::size_t next_such_slot(std::size_t from, std::size_t wanted) {
  return from + (wanted + kPeriod - from % kPeriod) % kPeriod;
}

}  // namespace

std::vector<PassSlots> first_ranks() {
  std::vector<PassSlots> ranks;
  for (std::size_t forward2 = 1; forward2 < kPeriod; ++forward2) {
    for (std::size_t backward2 = 1; backward2 < kPeriod; ++backward2) {
      for (std::size_t backward1 = 1; backward1 < kPeriod; ++backward1) {
        if (forward2 == backward2 || forward2 == backward1 || backward2 == backward1) continue;
        ranks.push_back(with_weights({0, forward2, backward2, backward1}));
      }
    }
  }
  return ranks;
}

std::optional<Block> block_of(const PassSlots& first_rank, const Steps& steps, std::size_t ranks) {
  Block block = {first_rank};
  while (block.size() < ranks) {
    const bool before = block.size() <= steps.ranks_before;
    const auto next = next_rank(block.back(), before ? steps.before : steps.after);
    if (!next) return std::nullopt;
    block.push_back(*next);
  }
  return block;
}

std::vector<PassSlots> first_slots(const Block& block) {
  const std::size_t ranks = block.size();
  std::vector<PassSlots> slots(ranks);
  std::size_t from = 0;
  const auto place = [&](std::size_t rank, Pass pass) {
    const std::size_t slot = next_such_slot(from, block[rank].at(as_index(pass)));
    slots[rank].at(as_index(pass)) = slot;
    return slot;
  };
  for (const Pass pass : kChain) {
    for (std::size_t i = 0; i < ranks; ++i) {
      const std::size_t rank = goes_down(pass) ? i : ranks - 1 - i;
      from = place(rank, pass) + 1;
      if (pass == Pass::Backward2) place(rank, Pass::Weight2);
      if (pass == Pass::Backward1) place(rank, Pass::Weight1);
    }
  }
  return slots;
}

std::int64_t peak_of(const std::vector<PassSlots>& first_slots) {
  std::int64_t peak = 0;
  for (const PassSlots& rank : first_slots) {
    const std::size_t steady = *std::ranges::max_element(rank);
    for (std::size_t slot = steady; slot < steady + kPeriod; ++slot) {
      std::int64_t held = 0;
      for (const Pass pass : {Pass::Forward1, Pass::Forward2, Pass::Weight2, Pass::Weight1}) {
        const std::size_t begun = (slot - rank.at(as_index(pass))) / kPeriod + 1;
        held += held_by(pass) * static_cast<std::int64_t>(begun);
      }
      peak = std::max(peak, held);
    }
  }
  return peak;
}

}  // namespace capo::schedules
