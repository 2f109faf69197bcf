// SwiGLU: silu(gate) * linear * probability by rows, and its gradients.
//
// A block takes a row at a time, eight columns a thread. Each thread writes only where it has read
// itself, so dx may be x.
//
// The gradient of a probability is added up as an epilogue of a product adds it up, which has a
// tile of kSummedColumns columns at a time: eight columns in their order, a butterfly over the 32
// sums of a part, then the parts in ascending order. Tested by tests/gpu/activations_test.cpp and
// gate_gradients_test.cpp.

#include "gpu/kernels/elements.cuh"
#include "gpu/kernels/families.h"
#include "gpu/kernels/row_groups.cuh"
#include "gpu/kernels/teams.cuh"

namespace capo::gpu {

namespace {

template <typename T>
__global__ void activate(run::SwiGlu call) {
  const Block block;
  const int rows = rows_in_use(call.rows);
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* gates = static_cast<const T*>(call.x) + row * 2 * call.columns;
    T* y = static_cast<T*>(call.y) + row * call.columns;
    const float probability = factor_of(call.probabilities, row);
    by_eights(block, call.columns, [&](std::int64_t column, std::int64_t left) {
      const Eight gate = load_eight(gates + column, left);
      const Eight linear = load_eight(gates + call.columns + column, left);
      store_eight(y + column, swiglu<T>(gate, linear, probability), left);
    });
  }
}

// The terms of a probability's gradient that eight columns give, added in their order.
template <typename T>
__device__ float put_slopes(const run::SwiGluGradient& call, std::int64_t row, std::int64_t column,
                            float probability) {
  const std::int64_t left = call.columns - column;
  const std::int64_t first = row * 2 * call.columns + column;
  const T* gates = static_cast<const T*>(call.x) + first;
  Eight gate = load_eight(gates, left);
  Eight linear = load_eight(gates + call.columns, left);
  const T* dy = static_cast<const T*>(call.dy) + row * call.columns + column;
  const Eight incoming = load_eight(dy, left);  // zero beyond the row
  const float sum = swiglu_gradient<T>(gate, linear, incoming, probability);
  if (call.dx == nullptr) return sum;
  T* dgates = static_cast<T*>(call.dx) + first;
  store_eight(dgates, gate, left);
  store_eight(dgates + call.columns, linear, left);
  return sum;
}

// A row's sums, one for each part of kSummedColumns: a warp takes a part at a time.
constexpr std::int64_t kParts = 256;
constexpr auto kPart = static_cast<std::int64_t>(run::kSummedColumns);
static_assert(kPart == 32 * 8, "eight columns for each lane");

template <typename T>
__global__ void find_gradient(run::SwiGluGradient call) {
  __shared__ float of_part[2][kParts];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t warps = blockDim.x / 32;
  const int rows = rows_in_use(call.rows);
  int turn = 0;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const float probability = factor_of(call.probabilities, row);
    float total = 0;
    for (std::int64_t first = 0; first < call.columns; first += kParts * kPart, turn ^= 1) {
      const std::int64_t parts = min(kParts, (call.columns - first + kPart - 1) / kPart);
      for (std::int64_t part = threadIdx.x / 32; part < parts; part += warps) {
        const std::int64_t column = first + part * kPart + lane * 8;
        const bool is_there = column < call.columns;
        float sum = is_there ? put_slopes<T>(call, row, column, probability) : 0.0F;
        if (call.dprobabilities == nullptr) continue;
        sum = Warp().sum(sum);
        if (lane == 0) of_part[turn][part] = sum;
      }
      if (call.dprobabilities == nullptr) continue;
      __syncthreads();  // the sums before these are in the other half
      for (std::int64_t part = 0; threadIdx.x == 0 && part < parts; ++part) {
        total += of_part[turn][part];
      }
    }
    if (threadIdx.x == 0 && call.dprobabilities != nullptr) call.dprobabilities[row] = total;
  }
}

// It adds up what an epilogue of a product has left, in the order of find_gradient.
__global__ void add_sums(run::ProbabilityGradient call) {
  const int rows = rows_in_use(call.rows);
  const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (std::int64_t row = first; row < rows; row += std::int64_t{gridDim.x} * blockDim.x) {
    const auto* x = static_cast<const std::uint16_t*>(call.x) + row * call.columns;
    float total = 0;
#pragma unroll 8
    for (std::int64_t column = 0; column < call.columns; column += kPart) {
      total += *reinterpret_cast<const float*>(x + column);
    }
    call.dprobabilities[row] = total;
  }
}

const Kernel<run::SwiGlu> kActivations[] = {activate<Bf16>, activate<Fp16>, activate<float>};
const Kernel<run::SwiGluGradient> kGradients[] = {find_gradient<Bf16>, find_gradient<Fp16>,
                                                  find_gradient<float>};
const Kernel<run::ProbabilityGradient> kSums[] = {add_sums};

}  // namespace

Launch<run::SwiGlu> launch_of(const run::SwiGlu& call) {
  return {.kernel = of_type(kActivations, call.type),
          .blocks = blocks_for(call.rows.count),
          .threads = threads_for(call.columns)};
}

Launch<run::SwiGluGradient> launch_of(const run::SwiGluGradient& call) {
  return {.kernel = of_type(kGradients, call.type),
          .blocks = blocks_for(call.rows.count),
          .threads = threads_for(call.columns)};
}

Launch<run::ProbabilityGradient> launch_of(const run::ProbabilityGradient& call) {
  constexpr int kThreads = 128;
  return {.kernel = add_sums,
          .blocks = blocks_for((call.rows.count + kThreads - 1) / kThreads),
          .threads = kThreads};
}

Kernels<run::SwiGlu> kernels_of(std::type_identity<run::SwiGlu>) {
  return kActivations;
}
Kernels<run::SwiGluGradient> kernels_of(std::type_identity<run::SwiGluGradient>) {
  return kGradients;
}
Kernels<run::ProbabilityGradient> kernels_of(std::type_identity<run::ProbabilityGradient>) {
  return kSums;
}

}  // namespace capo::gpu
