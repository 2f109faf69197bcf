// An arena gives memory out by the byte, first from the tightest gap.
//
// Neighbouring gaps are joined. With buffers of one size it never takes more than are alive at
// once; with several sizes it also takes what does not fit into the gaps (safe_plan_test.cpp
// measures how little that is). It owns no memory: it only counts offsets. Tested by
// arena_test.cpp.

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace capo {

class Arena {
 public:
  /// The offset of a range of `bytes`, at least one, that is free.
  std::int64_t take(std::int64_t bytes);
  void give_back(std::int64_t offset, std::int64_t bytes);
  /// One past the last byte that was ever taken.
  [[nodiscard]] std::int64_t top() const { return top_; }

 private:
  void insert(std::int64_t offset, std::int64_t bytes);
  void erase(std::map<std::int64_t, std::int64_t>::iterator gap);

  std::map<std::int64_t, std::int64_t> gaps_;                // bytes by offset
  std::set<std::pair<std::int64_t, std::int64_t>> by_size_;  // bytes, offset
  std::int64_t top_ = 0;
};

}  // namespace capo
