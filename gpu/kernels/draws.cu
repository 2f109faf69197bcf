// Numbers that are drawn where they lie, the host's to the bit. An element takes its own draw, so
// threads and blocks decide nothing. Tested by tests/gpu/draws_test.cpp.

#include "gpu/kernels/elements.cuh"
#include "gpu/kernels/families.h"

namespace capo::gpu {

namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kPerBlock = kThreads * 8;

// The NaN that the host stores: the device's own conversions make another one.
// The NaN that this device's units make, in bits: the host draws the same.
template <typename T>
__device__ T undrawn();
template <>
__device__ Bf16 undrawn<Bf16>() {
  return __ushort_as_bfloat16(0x7fff);
}
template <>
__device__ Fp16 undrawn<Fp16>() {
  return __ushort_as_half(0x7fff);
}
template <>
__device__ float undrawn<float>() {
  return __uint_as_float(0x7fffffffU);
}

template <typename T>
__global__ void draw(run::DrawInto call) {
  auto* to = static_cast<T*>(call.to);
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < call.count;
       i += step) {
    const std::int64_t at = call.first + i;
    to[i] = at < call.numbers.drawn ? round_to<T>(call.numbers.at(at)) : undrawn<T>();
  }
}

const Kernel<run::DrawInto> kDraws[] = {draw<Bf16>, draw<Fp16>, draw<float>};

}  // namespace

Launch<run::DrawInto> launch_of(const run::DrawInto& call) {
  return {.kernel = of_type(kDraws, call.type),
          .blocks = blocks_for((call.count + kPerBlock - 1) / kPerBlock),
          .threads = kThreads};
}

Kernels<run::DrawInto> kernels_of(std::type_identity<run::DrawInto>) {
  return kDraws;
}

}  // namespace capo::gpu
