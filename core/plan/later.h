// Clocks are arrays of positions, joined by keeping the later of each two. Tested by
// course_test.cpp and swept_course_test.cpp.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace capo {

// Compilers make vectors of a loop of a known length. Positions have a sign, since processors
// without AVX compare vectors of such numbers alone, and those of 16 bits in one step.
constexpr std::size_t kBlock = 8;

/// `length` rounded up to whole blocks.
constexpr std::size_t whole_blocks(std::size_t length) {
  return (length + kBlock - 1) / kBlock * kBlock;
}

/// Precondition of both: `length` is one of whole blocks.
template <typename Position>
void keep_later(const Position* __restrict source, Position* __restrict target,
                std::size_t length) {
  for (std::size_t block = 0; block < length; block += kBlock) {
    for (std::size_t i = block; i < block + kBlock; ++i) target[i] = std::max(target[i], source[i]);
  }
}
template <typename Position>
void keep_later_in_both(Position* __restrict a, Position* __restrict b, std::size_t length) {
  for (std::size_t block = 0; block < length; block += kBlock) {
    for (std::size_t i = block; i < block + kBlock; ++i) a[i] = b[i] = std::max(a[i], b[i]);
  }
}

}  // namespace capo
