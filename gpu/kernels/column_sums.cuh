// Sums down the columns of a matrix, for gradients of parameters that all rows share.
//
// A block of 32 warps takes kColumns columns and all rows: warp w adds rows w, w + 32, ... in
// ascending order, then the 32 sums of a column are added in ascending order. The order follows
// from the number of rows alone. Shared memory: 32 * kColumns floats for each sum of a column.
//
// Tested through norms.cu and biases.cu.

#pragma once

#include <cstdint>

namespace capo::gpu {

inline constexpr int kSummingWarps = 32;
inline constexpr int kColumnsPerLane = 2;
inline constexpr int kColumns = 32 * kColumnsPerLane;

[[nodiscard]] __host__ __device__ constexpr std::int64_t slabs_of(std::int64_t columns) {
  return (columns + kColumns - 1) / kColumns;
}

template <int kSums>
struct Terms {
  float at[kSums];
};

/// term_of_row(row) is asked once by all lanes of a warp and gives what is then called as
/// term(column); put(column, sums) is called once a column by one thread of the block.
template <int kSums, typename TermOfRow, typename Put>
__device__ void sum_columns(std::int64_t first_row, std::int64_t end, std::int64_t first_column,
                            std::int64_t columns, TermOfRow term_of_row, Put put) {
  __shared__ Terms<kSums> of_warp[kSummingWarps][kColumns];
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = static_cast<int>(threadIdx.x / 32);
  Terms<kSums> sums[kColumnsPerLane] = {};
#pragma unroll 1
  for (std::int64_t row = first_row + warp; row < end; row += kSummingWarps) {
    const auto term = term_of_row(row);
#pragma unroll
    for (int i = 0; i < kColumnsPerLane; ++i) {
      const std::int64_t column = first_column + lane + i * 32;
      if (column >= columns) continue;
      const Terms<kSums> terms = term(column);
#pragma unroll
      for (int s = 0; s < kSums; ++s) sums[i].at[s] += terms.at[s];
    }
  }
  __syncthreads();  // somebody may still be reading the sums of an earlier slab
#pragma unroll
  for (int i = 0; i < kColumnsPerLane; ++i) of_warp[warp][lane + i * 32] = sums[i];
  __syncthreads();
  const auto mine = static_cast<int>(threadIdx.x);
  if (mine >= kColumns || first_column + mine >= columns) return;
  Terms<kSums> total = {};
  for (int from = 0; from < kSummingWarps; ++from) {
#pragma unroll
    for (int s = 0; s < kSums; ++s) total.at[s] += of_warp[from][mine].at[s];
  }
  put(first_column + mine, total);
}

}  // namespace capo::gpu
