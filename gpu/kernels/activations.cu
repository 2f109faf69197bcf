// SwiGLU: silu(gate) * linear * probability by rows, and its gradients.
//
// A block takes a row at a time, eight columns a thread. Each thread writes only where it has read
// itself, so dx may be x. Tested by tests/gpu/activations_test.cpp.

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

template <typename T>
__global__ void find_gradient(run::SwiGluGradient call) {
  const Block block;
  const int rows = rows_in_use(call.rows);
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* gates = static_cast<const T*>(call.x) + row * 2 * call.columns;
    const T* dy = static_cast<const T*>(call.dy) + row * call.columns;
    T* dgates = static_cast<T*>(call.dx) + row * 2 * call.columns;
    const float probability = factor_of(call.probabilities, row);
    float sum = 0;
    by_eights(block, call.columns, [&](std::int64_t column, std::int64_t left) {
      Eight gate = load_eight(gates + column, left);
      Eight linear = load_eight(gates + call.columns + column, left);
      const Eight incoming = load_eight(dy + column, left);  // zero beyond the row
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const SwiGluSlopes slopes =
            swiglu_slopes<T>(gate.at[i], linear.at[i], incoming.at[i], probability);
        sum = __fmaf_rn(__fmul_rn(incoming.at[i], slopes.activated), linear.at[i], sum);
        gate.at[i] = slopes.gate;
        linear.at[i] = slopes.linear;
      }
      if (call.dx == nullptr) return;
      store_eight(dgates + column, gate, left);
      store_eight(dgates + call.columns + column, linear, left);
    });
    if (call.dprobabilities == nullptr) continue;
    sum = block.sum(sum);
    if (block.index == 0) call.dprobabilities[row] = sum;
  }
}

const Kernel<run::SwiGlu> kActivations[] = {activate<Bf16>, activate<Fp16>, activate<float>};
const Kernel<run::SwiGluGradient> kGradients[] = {find_gradient<Bf16>, find_gradient<Fp16>,
                                                  find_gradient<float>};

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

Kernels<run::SwiGlu> kernels_of(std::type_identity<run::SwiGlu>) {
  return kActivations;
}
Kernels<run::SwiGluGradient> kernels_of(std::type_identity<run::SwiGluGradient>) {
  return kGradients;
}

}  // namespace capo::gpu
