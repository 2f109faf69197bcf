// Threads that share a row: a warp or a whole block. They go through it by eights in strides, and a
// sum over them is added in an order that depends on their number alone: each thread's own, then a
// butterfly within each warp, then the warps in ascending order. Everyone gets the same bits.
//
// All threads of a team call sum(), or none. Shared memory of Block: a float for each of at most 32
// warps. Tested through the families that use it.

#pragma once

#include <cstdint>

namespace capo::gpu {

struct Warp {
  int index = static_cast<int>(threadIdx.x % 32);  ///< of this thread in the team
  int size = 32;

  __device__ float sum(float value) const {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
      value += __shfl_xor_sync(0xffffffffU, value, distance);
    }
    return value;
  }
};

struct Block {
  int index = static_cast<int>(threadIdx.x);
  int size = static_cast<int>(blockDim.x);

  __device__ float sum(float value) const {
    __shared__ float of_warp[32];
    value = Warp().sum(value);
    __syncthreads();  // somebody may still be reading an earlier sum
    if (index % 32 == 0) of_warp[index / 32] = value;
    __syncthreads();
    float sum = 0;
    for (int warp = 0; warp < size / 32; ++warp) sum += of_warp[warp];
    return sum;
  }
};

/// Calls visit(first column, columns left from there) for this thread's share of a row.
template <typename Team, typename Visit>
__device__ void by_eights(const Team& team, std::int64_t columns, Visit visit) {
  for (std::int64_t column = team.index * 8; column < columns; column += team.size * 8) {
    visit(column, columns - column);
  }
}

}  // namespace capo::gpu
