// An arena gives memory out by the byte, first from the tightest gap.
//
// Neighbouring gaps are joined. With buffers of one size it never takes more than are alive at
// once; with several sizes it also takes what does not fit into the gaps (safe_plan_test.cpp
// measures how little that is). It owns no memory: it only counts offsets. Tested by
// arena_test.cpp.

#include "core/plan/layout.h"

#include <iterator>

namespace capo {

void Arena::insert(std::int64_t offset, std::int64_t bytes) {
  gaps_.emplace(offset, bytes);
  by_size_.emplace(bytes, offset);
}

void Arena::erase(std::map<std::int64_t, std::int64_t>::iterator gap) {
  by_size_.erase({gap->second, gap->first});
  gaps_.erase(gap);
}

std::int64_t Arena::take(std::int64_t bytes) {
  const auto tightest = by_size_.lower_bound({bytes, 0});
  if (tightest != by_size_.end()) {
    const auto [size, offset] = *tightest;
    erase(gaps_.find(offset));
    if (size > bytes) insert(offset + bytes, size - bytes);
    return offset;
  }
  // The memory grows, from within the last gap if that one ends where the memory does.
  std::int64_t offset = top_;
  if (!gaps_.empty()) {
    const auto last = std::prev(gaps_.end());
    if (last->first + last->second == top_) {
      offset = last->first;
      erase(last);
    }
  }
  top_ = offset + bytes;
  return offset;
}

void Arena::give_back(std::int64_t offset, std::int64_t bytes) {
  auto after = gaps_.lower_bound(offset);
  if (after != gaps_.end() && offset + bytes == after->first) {
    bytes += after->second;
    const auto joined = after++;
    erase(joined);
  }
  if (after != gaps_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      erase(before);
    }
  }
  insert(offset, bytes);
}

}  // namespace capo
