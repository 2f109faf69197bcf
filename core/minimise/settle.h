// Puts a schedule that was cut in order again: everything that a reader would infer from its text.
//
//   F1 F1 B1 B1  without its first F1   ->   F1.0 B1.0 B1.1: counted anew
//
// A schedule that loses entries, chunks or ranks must stay one that .order text can say, or the
// text would mean something else than what was checked. Tested by deletions_test.cpp: printing a
// settled schedule and reading it gives it back.

#pragma once

#include "core/order/schedule.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace capo {

/// The offset of an entry that is followed while a schedule is cut. No span begins there, since a
/// text has fewer bytes.
inline constexpr std::uint32_t kFollowed = 0xffffffff;

/// Numbers counted microbatches, infers undeclared chunks, and places stages by their topology.
/// Entries lose their spans, since their text is gone; those that are followed keep that mark.
void settle(Schedule& schedule);

/// Changes every entry of both orders of a rank.
template <typename Change>
void change_entries(RankOrder& rank, const Change& change) {
  std::for_each(rank.order.begin(), rank.order.end(), change);
  if (rank.replay) std::for_each(rank.replay->begin(), rank.replay->end(), change);
}

/// Removes entries. A composite stays one while it has two members.
void erase_entries(std::vector<Entry>& order, const std::function<bool(const Entry&)>& goes);
/// Removes entries from the order that a rank replays. Resets stay between those that they were
/// between.
void erase_replayed(RankOrder& rank, const std::function<bool(const Entry&)>& goes);
/// Removes entries from both orders of a rank.
void erase_entries(RankOrder& rank, const std::function<bool(const Entry&)>& goes);

}  // namespace capo
