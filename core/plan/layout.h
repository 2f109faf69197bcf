// A layout gives each block an offset, so that no two blocks that are alive together share a byte,
// in little more memory than the most that is alive at once.
//
//   4 bytes in [0, 2), 2 bytes in [1, 3), 4 bytes in [2, 4)   ->   0, 4, 0
//
// lay_out() tries two ways and takes the better one. The first gives each block the tightest gap as
// time goes on (arena.cpp), which is exact for blocks of one size, and linear. The second lays out
// large blocks first, each at the lowest offset that is free as long as it is alive, which is
// better if sizes differ. It takes time of blocks times their neighbours, so it is tried for at
// most kMostSorted blocks, and only if the first way wastes something. Addresses of buffers are not
// its concern (safe_plan.h). Tested by layout_test.cpp; safe_peaks_test.cpp prints the sizes that
// both ways reach on all shipped schedules.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace capo {

struct Block {
  std::int64_t bytes = 0;   ///< at least one
  std::uint32_t begin = 0;  ///< the block is alive in the moments [begin, end), at least one
  std::uint32_t end = 0;
};

struct Layout {
  std::vector<std::int64_t> offsets;  ///< by block
  std::int64_t total = 0;
};

inline constexpr std::size_t kMostSorted = 100'000;

/// Blocks come in the order of their beginnings; `least` bytes are the most that is alive at once.
[[nodiscard]] Layout lay_out(const std::vector<Block>& blocks, std::int64_t least);

/// Gives memory out by the byte, first from the tightest gap (arena.cpp).
class Arena {
 public:
  /// The offset of a range of `bytes`, at least one, that is free.
  std::int64_t take(std::int64_t bytes);
  void give_back(std::int64_t offset, std::int64_t bytes);
  /// One past the last byte that was ever taken.
  [[nodiscard]] std::int64_t top() const { return top_; }

 private:
  struct Gap {
    std::int64_t offset;
    std::int64_t bytes;
    [[nodiscard]] std::int64_t end() const { return offset + bytes; }
  };

  std::int64_t grow(std::int64_t bytes);

  std::vector<Gap> gaps_;  // by offset; no two of them touch
  std::int64_t top_ = 0;
};

}  // namespace capo
