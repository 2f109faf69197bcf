// How a product whose results are rows is divided among blocks.
//
// Items are tiles of 128 rows and 256 columns, of which a block takes every gridDim-th. Most blocks
// may have nothing left in the last round. If it has items for at most half of them, each is cut in
// two narrower tiles, or in four for at most a quarter. Where tiles of 192 columns would be over
// sooner than those of 256 they take their place, and are not cut.
//
// However a call is divided, each element is added up in the same way. Blocks compute the division
// on the device, where sizes are, and in 32 bits, since they have nothing else to do meanwhile.
// Tested by row_division_test.cpp.

#pragma once

#include "gpu/kernels/parts.h"

namespace capo::gpu {

inline constexpr int kRowsHigh = 128;
inline constexpr int kRowsWide = 256;
inline constexpr int kRowsNarrow = 192;
inline constexpr int kRowsDeep = 64;

/// Tiles of kRowsWide or kRowsNarrow columns beside each other over all columns.
[[nodiscard]] CAPO_ON_BOTH inline int tiles_across(int columns, int wide) {
  // The compiler knows both divisors.
  return wide == kRowsWide ? (columns + kRowsWide - 1) / kRowsWide
                           : (columns + kRowsNarrow - 1) / kRowsNarrow;
}

/// How a call is divided.
struct RowDivision {
  int wide;    ///< columns of an item
  int whole;   ///< items that are not cut
  int pieces;  ///< of each item behind them: 1, 2 or 4
  int end;     ///< whole items, and pieces of all others

  [[nodiscard]] CAPO_ON_BOTH int item_at(int at) const {
    return at < whole ? at : whole + (at - whole) / pieces;
  }
  /// The first column of a piece, from the first of its item on.
  [[nodiscard]] CAPO_ON_BOTH int skipped_at(int at) const {
    return at < whole ? 0 : (at - whole) % pieces * (wide / pieces);
  }
  [[nodiscard]] CAPO_ON_BOTH int wide_at(int at) const { return at < whole ? wide : wide / pieces; }
};

[[nodiscard]] CAPO_ON_BOTH inline RowDivision undivided(int items) {
  return {kRowsWide, items, 1, items};
}

/// Divides a call with so many rows of tiles, whose elements are sums over `depth`. Times are
/// counted in cycles, of a slice of kRowsDeep and of results, for tiles of 256, 192, 128 and 64
/// columns: docs/gpu.md says where they come from.
[[nodiscard]] CAPO_ON_BOTH inline RowDivision divide_rows(int down, int columns, int depth,
                                                          int blocks) {
  // Times are in floating point, so that nothing overflows.
  const auto slices = static_cast<float>(parts(depth, kRowsDeep));
  const int items = down * tiles_across(columns, kRowsWide);
  const int rounds = items / blocks;
  const int last = items - rounds * blocks;
  const int pieces = last * 4 <= blocks ? 4 : last * 2 <= blocks ? 2 : 1;
  const float of_last = last == 0     ? 0
                        : pieces == 4 ? slices * 448 + 2100
                        : pieces == 2 ? slices * 640 + 2700
                                      : slices * 1024 + 3900;
  const int narrow = down * tiles_across(columns, kRowsNarrow);
  const float of_wide = static_cast<float>(rounds) * (slices * 1024 + 3900) + of_last;
  const float of_narrow =
      static_cast<float>((narrow + blocks - 1) / blocks) * (slices * 832 + 3300);
  if (of_narrow < of_wide * 0.97F) return {kRowsNarrow, narrow, 1, narrow};
  if (pieces == 1) return undivided(items);
  return {kRowsWide, items - last, pieces, items - last + last * pieces};
}

}  // namespace capo::gpu
