// Groups that rows choose: the choice, its sorting, the sum of what the groups made, and the
// gradient of the logits.
//
// A warp takes a row of logits; lane l has those of groups l, l + 32, ... It keeps them in
// registers where there are at most kOfLane, which are all that are served. A greatest logit is
// found lane by lane and then by a butterfly that takes the lower group of equal ones, so every
// lane knows the same choice.
//
// Sorting is one kernel with a block for each group and no word between them: a block reads all
// choices, counts those of lower groups, and gives its own the places behind these, in ascending
// order. That reads the choices once a group, all but the first time from L2: 4096 tokens of 8
// choices and 256 groups are 64 MiB. No atomic is used, so that the order is that of the choices.
//
// Shared memory of sorting: a count of each warp, and the two counts that all warps take from.
// Tested by tests/gpu/routes_test.cpp.

#include "gpu/kernels/elements.cuh"
#include "gpu/kernels/families.h"
#include "gpu/kernels/kernels.h"
#include "gpu/kernels/teams.cuh"

#include <cstdint>
#include <limits>

namespace capo::gpu {

namespace {

constexpr unsigned kAll = 0xffffffffU;
constexpr int kWarps = 8;  // of a block that takes a row a warp
constexpr int kOfLane = static_cast<int>(kMostGroups / 32);
constexpr int kSortThreads = 1024;

// A lane's part of the softmax over the logits of a row.
struct Shares {
  template <typename T>
  __device__ Shares(const T* row, int count) : groups(count) {
    float greatest = -INFINITY;
#pragma unroll
    for (int i = 0; i < kOfLane; ++i) {
      const int group = group_of(i);
      logits[i] = group < groups ? to_float(row[group]) : -INFINITY;
      if (group < groups) greatest = fmaxf(greatest, logits[i]);
    }
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
      greatest = fmaxf(greatest, __shfl_xor_sync(kAll, greatest, distance));
    }
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kOfLane; ++i) {
      shares[i] = group_of(i) < groups ? expf(logits[i] - greatest) : 0.0F;
      sum += shares[i];
    }
    sum = Warp().sum(sum);
#pragma unroll
    for (int i = 0; i < kOfLane; ++i) shares[i] /= sum;
  }

  __device__ static int group_of(int i) {
    return static_cast<int>(threadIdx.x % 32) + i * 32;
  }

  /// Every lane gets the share of a group, which one lane has.
  __device__ float of(int group) const {
    float share = 0;
#pragma unroll
    for (int i = 0; i < kOfLane; ++i) {
      if (group / 32 == i) share = shares[i];
    }
    return __shfl_sync(kAll, share, group % 32);
  }

  int groups;
  float logits[kOfLane];
  float shares[kOfLane];
};

// A group and its logit; no group is -1.
struct Candidate {
  float logit;
  int group;
};

__device__ Candidate better(Candidate a, Candidate b) {
  if (a.group < 0 || b.group < 0) return a.group < 0 ? b : a;
  const Candidate lower = a.group < b.group ? a : b;
  const Candidate higher = a.group < b.group ? b : a;
  return higher.logit > lower.logit ? higher : lower;
}

// The first of the greatest logits of the groups that are not taken; a bit of `taken` is one of
// this lane's.
__device__ int next_choice(const Shares& of, unsigned taken) {
  Candidate best{0, -1};
#pragma unroll
  for (int i = 0; i < kOfLane; ++i) {
    const int group = Shares::group_of(i);
    if (group < of.groups && (taken >> i & 1U) == 0) best = better(best, {of.logits[i], group});
  }
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    best = better(best, {__shfl_xor_sync(kAll, best.logit, distance),
                         __shfl_xor_sync(kAll, best.group, distance)});
  }
  return best.group;
}

// Calls visit(row) for this warp's rows.
template <typename Visit>
__device__ void by_warps(std::int64_t rows, Visit visit) {
  const std::int64_t first = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  for (std::int64_t row = first; row < rows; row += std::int64_t{gridDim.x} * kWarps) visit(row);
}

template <typename T>
__global__ void __launch_bounds__(kWarps * 32) route(run::Route call) {
  const std::int64_t groups = call.shape.groups;
  by_warps(call.shape.rows, [&](std::int64_t row) {
    const Shares shares(static_cast<const T*>(call.logits) + row * groups,
                        static_cast<int>(groups));
    unsigned taken = 0;
    for (std::int64_t k = 0; k < call.shape.top_k; ++k) {
      const int group = next_choice(shares, taken);
      if (group % 32 == static_cast<int>(threadIdx.x % 32)) taken |= 1U << (group / 32);
      const float probability = shares.of(group);
      if (threadIdx.x % 32 != 0) continue;
      call.groups[row * call.shape.top_k + k] = group;
      call.probabilities[row * call.shape.top_k + k] = probability;
    }
  });
}

// How many threads before this one say yes, and how many of the block do. All threads call it.
struct Before {
  int own;
  int all;
};
__device__ Before count_before(bool yes, int* of_warp) {
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int lane = static_cast<int>(threadIdx.x % 32);
  const unsigned votes = __ballot_sync(kAll, yes);
  __syncthreads();  // somebody may still be reading earlier counts
  if (lane == 0) of_warp[warp] = __popc(votes);
  __syncthreads();
  Before before{__popc(votes & ((1U << lane) - 1U)), 0};
  for (int other = 0; other < kSortThreads / 32; ++other) {
    if (other < warp) before.own += of_warp[other];
    before.all += of_warp[other];
  }
  return before;
}

__global__ void __launch_bounds__(kSortThreads) sort_routes(run::SortRoutes call) {
  __shared__ int of_warp[kSortThreads / 32];
  const auto group = static_cast<std::int64_t>(blockIdx.x);
  const auto choices = static_cast<int>(call.shape.rows * call.shape.top_k);
  int lower = 0;
  for (int first = 0; first < choices; first += kSortThreads) {
    const int choice = first + static_cast<int>(threadIdx.x);
    lower += count_before(choice < choices && call.groups[choice] < group, of_warp).all;
  }
  int place = lower;
  for (int first = 0; first < choices; first += kSortThreads) {
    const int choice = first + static_cast<int>(threadIdx.x);
    const bool own = choice < choices && call.groups[choice] == group;
    const Before before = count_before(own, of_warp);
    if (own) {
      const int to = place + before.own;
      call.places[choice] = to;
      call.sources[to] = choice / call.shape.top_k;
      call.sorted_probabilities[to] = call.probabilities[choice];
    }
    place += before.all;
  }
  if (threadIdx.x == 0) call.sizes[group] = place - lower;
}

// A block takes a row, eight columns a thread.
template <typename T>
__global__ void combine(run::Combine call) {
  const Block block;
  const std::int64_t top_k = call.shape.top_k;
  for (std::int64_t row = blockIdx.x; row < call.shape.rows; row += gridDim.x) {
    T* y = static_cast<T*>(call.y) + row * call.columns;
    by_eights(block, call.columns, [&](std::int64_t column, std::int64_t left) {
      Eight sum{};
      for (std::int64_t k = 0; k < top_k; ++k) {
        const std::int64_t place = call.places[row * top_k + k];
        const Eight made =
            load_eight(static_cast<const T*>(call.x) + place * call.columns + column, left);
#pragma unroll
        for (int i = 0; i < 8; ++i) sum.at[i] += made.at[i];
      }
      if (call.write == run::Write::Add) {
        const Eight there = load_eight(y + column, left);
#pragma unroll
        for (int i = 0; i < 8; ++i) sum.at[i] = there.at[i] + sum.at[i];
      }
      store_eight(y + column, sum, left);
    });
  }
}

// dlogits may be logits: a lane writes only where it alone has read.
template <typename T>
__global__ void __launch_bounds__(kWarps * 32) find_gradient(run::RouteGradient call) {
  const std::int64_t groups = call.shape.groups;
  by_warps(call.shape.rows, [&](std::int64_t row) {
    const Shares shares(static_cast<const T*>(call.logits) + row * groups,
                        static_cast<int>(groups));
    float incoming[kOfLane] = {};
    float inner = 0;
    for (std::int64_t k = 0; k < call.shape.top_k; ++k) {
      const std::int64_t choice = row * call.shape.top_k + k;
      const int group = static_cast<int>(call.groups[choice]);
      const float gradient = call.dprobabilities[call.places[choice]];
      inner += shares.of(group) * gradient;
#pragma unroll
      for (int i = 0; i < kOfLane; ++i) {
        if (Shares::group_of(i) == group) incoming[i] = gradient;
      }
    }
    T* dlogits = static_cast<T*>(call.dlogits) + row * groups;
#pragma unroll
    for (int i = 0; i < kOfLane; ++i) {
      const int group = Shares::group_of(i);
      if (group < groups) dlogits[group] = round_to<T>(shares.shares[i] * (incoming[i] - inner));
    }
  });
}

const Kernel<run::Route> kRoutes[] = {route<Bf16>, route<Fp16>, route<float>};
const Kernel<run::SortRoutes> kSorts[] = {sort_routes};
const Kernel<run::Combine> kCombines[] = {combine<Bf16>, combine<Fp16>, combine<float>};
const Kernel<run::RouteGradient> kGradients[] = {find_gradient<Bf16>, find_gradient<Fp16>,
                                                 find_gradient<float>};

bool is_served(const run::RouteShape& shape) {
  return shape.groups >= 1 && shape.groups <= kMostGroups && shape.top_k >= 1 &&
         shape.top_k <= shape.groups &&
         shape.rows <= std::numeric_limits<std::int32_t>::max() / shape.top_k;
}

}  // namespace

Launch<run::Route> launch_of(const run::Route& call) {
  return {.kernel = is_served(call.shape) ? of_type(kRoutes, call.type) : nullptr,
          .blocks = blocks_for((call.shape.rows + kWarps - 1) / kWarps),
          .threads = kWarps * 32};
}
Launch<run::SortRoutes> launch_of(const run::SortRoutes& call) {
  return {.kernel = is_served(call.shape) ? sort_routes : nullptr,
          .blocks = call.shape.groups,
          .threads = kSortThreads};
}
Launch<run::Combine> launch_of(const run::Combine& call) {
  return {.kernel = is_served(call.shape) ? of_type(kCombines, call.type) : nullptr,
          .blocks = blocks_for(call.shape.rows),
          .threads = threads_for(call.columns)};
}
Launch<run::RouteGradient> launch_of(const run::RouteGradient& call) {
  return {.kernel = is_served(call.shape) ? of_type(kGradients, call.type) : nullptr,
          .blocks = blocks_for((call.shape.rows + kWarps - 1) / kWarps),
          .threads = kWarps * 32};
}

Kernels<run::Route> kernels_of(std::type_identity<run::Route>) {
  return kRoutes;
}
Kernels<run::SortRoutes> kernels_of(std::type_identity<run::SortRoutes>) {
  return kSorts;
}
Kernels<run::Combine> kernels_of(std::type_identity<run::Combine>) {
  return kCombines;
}
Kernels<run::RouteGradient> kernels_of(std::type_identity<run::RouteGradient>) {
  return kGradients;
}

}  // namespace capo::gpu
