// The groups of a call's rows, as their sizes lie on the device at this moment. A block adds them
// up once and asks its shared memory from then on.
//
// Shared memory: the first row of each group and the row behind the last group,
// (kMostGroups + 1) * 4 bytes. Tested by tests/gpu/ with changing sizes.

#pragma once

#include "gpu/kernels/kernels.h"

#include <cstdint>

namespace capo::gpu {

struct RowGroups {
  int first_row[kMostGroups + 1];
};

/// Rows in a group.
__device__ inline int size_of(const run::Rows& rows, int group) {
  return static_cast<int>(rows.sizes == nullptr ? rows.count : rows.sizes[group]);
}
__device__ inline int groups_of(const run::Rows& rows) {
  return rows.sizes == nullptr ? 1 : static_cast<int>(rows.groups);
}

/// For one whole warp: writes the sums of term(0) ... term(i - 1) for i from 0 to count, and
/// returns that of all.
template <typename Term>
__device__ int write_sums(int count, int* sums, Term term) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  int before = 0;
  for (int first = 0; first < count; first += 32) {
    int sum = first + lane < count ? term(first + lane) : 0;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const int other = __shfl_up_sync(0xffffffffU, sum, distance);
      if (lane >= distance) sum += other;
    }
    if (first + lane < count) sums[first + lane + 1] = before + sum;
    before += __shfl_sync(0xffffffffU, sum, 31);
  }
  if (lane == 0) sums[0] = 0;
  return before;
}

/// For a whole block, which waits for it.
__device__ inline void find_groups(const run::Rows& rows, RowGroups& groups) {
  if (threadIdx.x < 32) {
    write_sums(groups_of(rows), groups.first_row, [&](int group) { return size_of(rows, group); });
  }
  __syncthreads();
}

/// The group that a row lies in; it is in use.
__device__ inline int group_of(const RowGroups& groups, int count, int row) {
  int low = 0;
  int high = count - 1;
  while (low < high) {  // the first group that ends behind the row
    const int middle = (low + high) / 2;
    if (groups.first_row[middle + 1] > row) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/// For a whole block: how many rows all groups have.
__device__ inline int rows_in_use(const run::Rows& rows) {
  if (rows.sizes == nullptr) return static_cast<int>(rows.count);
  __shared__ int in_use;
  if (threadIdx.x < 32) {
    int sum = 0;
    for (int group = static_cast<int>(threadIdx.x); group < rows.groups; group += 32) {
      sum += static_cast<int>(rows.sizes[group]);
    }
    sum = __reduce_add_sync(0xffffffffU, sum);
    if (threadIdx.x == 0) in_use = sum;
  }
  __syncthreads();
  return in_use;
}

}  // namespace capo::gpu
