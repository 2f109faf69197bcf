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

// The place of eight columns of a row, of `columns`.
template <typename T>
struct SlopesAt {
  const T* gates;
  const T* dy;
  T* dgates;  ///< null: not wanted
  int columns;
  int left;  ///< columns from there on

  // Puts the gradients, and returns the sum of their terms in the gradient of the probability.
  __device__ float put(float probability) const {
    Eight gate = load_eight(gates, left);
    Eight linear = load_eight(gates + columns, left);
    const Eight incoming = load_eight(dy, left);  // zero beyond the row
    const float sum = swiglu_gradient<T>(gate, linear, incoming, probability);
    if (dgates == nullptr) return sum;
    store_eight(dgates, gate, left);
    store_eight(dgates + columns, linear, left);
    return sum;
  }
};

// Sums of a row's parts, so many of which are kept at a time. A warp takes a part at a time.
constexpr int kParts = 256;
constexpr auto kPart = static_cast<int>(run::kSummedColumns);
static_assert(kPart == 32 * 8, "eight columns for each lane");

template <typename T>
__global__ void find_gradient(run::SwiGluGradient call) {
  __shared__ float of_part[2][kParts];
  const auto columns = static_cast<int>(call.columns);
  const auto across = static_cast<int>(threadIdx.x) * 8;
  const auto step = static_cast<int>(blockDim.x) * 8;
  const bool adds = call.dprobabilities != nullptr;
  const int rows = rows_in_use(call.rows);
  int turn = 0;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* gates = static_cast<const T*>(call.x) + row * 2 * columns;
    const T* dy = static_cast<const T*>(call.dy) + row * columns;
    T* dgates = call.dx == nullptr ? nullptr : static_cast<T*>(call.dx) + row * 2 * columns;
    const float probability = factor_of(call.probabilities, row);
    float total = 0;
    for (int first = 0; first < columns; first += kParts * kPart, turn ^= 1) {
      const int end = min(first + kParts * kPart, columns);
      for (int at = across; first + at / kPart * kPart < end; at += step) {
        const int column = first + at;
        float sum = 0;
        if (column < columns) {
          T* const to = dgates == nullptr ? nullptr : dgates + column;
          sum = SlopesAt<T>{gates + column, dy + column, to, columns, columns - column}.put(
              probability);
        }
        if (!adds) continue;
        sum = Warp().sum(sum);
        if (at % kPart == 0) of_part[turn][at / kPart] = sum;
      }
      if (!adds) continue;
      __syncthreads();  // the sums before these are in the other half
      for (int part = 0; across == 0 && first + part * kPart < end; ++part) {
        total += of_part[turn][part];
      }
    }
    if (across == 0 && adds) call.dprobabilities[row] = total;
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
    for (std::int64_t column = 0; column < call.columns; column += run::kSummedColumns) {
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
