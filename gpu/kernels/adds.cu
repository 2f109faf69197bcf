// One tensor added to another, each of its own type: eight elements a thread. Tested by
// tests/gpu/bytes_test.cpp.

#include "gpu/kernels/elements.cuh"
#include "gpu/kernels/families.h"

namespace capo::gpu {

namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kPerBlock = kThreads * 8;

template <typename To, typename From>
__global__ void add(run::Add call) {
  auto* to = static_cast<To*>(call.to);
  const auto* from = static_cast<const From*>(call.from);
  for (std::int64_t at = blockIdx.x * kPerBlock + threadIdx.x * 8; at < call.count;
       at += gridDim.x * kPerBlock) {
    Eight sum = load_eight(to + at, call.count - at);
    const Eight added = load_eight(from + at, call.count - at);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum.at[i] += added.at[i];
    store_eight(to + at, sum, call.count - at);
  }
}

const Kernel<run::Add> kAdds[] = {add<Bf16, Bf16>,  add<Bf16, Fp16>,  add<Bf16, float>,
                                  add<Fp16, Bf16>,  add<Fp16, Fp16>,  add<Fp16, float>,
                                  add<float, Bf16>, add<float, Fp16>, add<float, float>};

}  // namespace

Launch<run::Add> launch_of(const run::Add& call) {
  return {.kernel = of_types(kAdds, call.to_type, call.from_type),
          .blocks = blocks_for((call.count + kPerBlock - 1) / kPerBlock),
          .threads = kThreads};
}

Kernels<run::Add> kernels_of(std::type_identity<run::Add>) {
  return kAdds;
}

}  // namespace capo::gpu
