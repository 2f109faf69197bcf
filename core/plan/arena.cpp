// An arena gives memory out by the byte, first from the tightest gap.
//
// Neighbouring gaps are joined. With buffers of one size it never takes more than are alive at
// once; with several sizes it also takes what does not fit into the gaps (safe_plan_test.cpp
// measures how little that is). It owns no memory: it only counts offsets. Gaps are few, since what
// is given back soon joins its neighbours, so they lie in a sorted vector that is looked through:
// trees of them took three times as long. Tested by arena_test.cpp.

#include "core/plan/layout.h"

#include <algorithm>

namespace capo {

std::int64_t Arena::take(std::int64_t bytes) {
  auto tightest = gaps_.end();
  for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
    if (gap->bytes < bytes) continue;
    if (tightest == gaps_.end() || gap->bytes < tightest->bytes) tightest = gap;
    if (gap->bytes == bytes) break;
  }
  if (tightest == gaps_.end()) return grow(bytes);
  const std::int64_t offset = tightest->offset;
  tightest->offset += bytes;
  tightest->bytes -= bytes;
  if (tightest->bytes == 0) gaps_.erase(tightest);
  return offset;
}

// The memory grows, from within the last gap if that one ends where the memory does.
std::int64_t Arena::grow(std::int64_t bytes) {
  std::int64_t offset = top_;
  if (!gaps_.empty() && gaps_.back().end() == top_) {
    offset = gaps_.back().offset;
    gaps_.pop_back();
  }
  top_ = offset + bytes;
  return offset;
}

void Arena::give_back(std::int64_t offset, std::int64_t bytes) {
  const auto after =
      std::lower_bound(gaps_.begin(), gaps_.end(), offset,
                       [](const Gap& gap, std::int64_t at) { return gap.offset < at; });
  const bool joins_after = after != gaps_.end() && offset + bytes == after->offset;
  const bool joins_before = after != gaps_.begin() && std::prev(after)->end() == offset;
  if (joins_before && joins_after) {
    std::prev(after)->bytes += bytes + after->bytes;
    gaps_.erase(after);
  } else if (joins_before) {
    std::prev(after)->bytes += bytes;
  } else if (joins_after) {
    *after = {offset, bytes + after->bytes};
  } else {
    gaps_.insert(after, {offset, bytes});
  }
}

}  // namespace capo
