// This file chooses the kernel that multiplies codes: that of scaled_hopper.cuh on a device of
// sm_90 for blocks of 128 whose codes lie as 16-byte copies need it, else a plain one. Tested by
// tests/gpu/codes_test.cpp.

#include "core/base/result.h"
#include "gpu/kernels/families.h"
#include "gpu/kernels/limits.h"
#include "gpu/kernels/scaled_hopper.cuh"
#include "gpu/kernels/scaled_plain.cuh"

#include <algorithm>
#include <cstdint>

namespace capo::gpu {

namespace {

using run::ScaledProduct;
using run::Scaling;

const Kernel<ScaledProduct> kKernels[] = {
    // Plain ones, by the scaling and then the type of the result.
    multiply_scaled_plainly<Scaling::Block, Bf16>, multiply_scaled_plainly<Scaling::Block, Fp16>,
    multiply_scaled_plainly<Scaling::Block, float>, multiply_scaled_plainly<Scaling::Mxfp8, Bf16>,
    multiply_scaled_plainly<Scaling::Mxfp8, Fp16>, multiply_scaled_plainly<Scaling::Mxfp8, float>,
    // On sm_90a, by the scaling: rows, and gradients of weights, by the type of the result.
    multiply_scaled_on_hopper<Scaling::Block, Bf16, WideFor::Rows>,
    multiply_scaled_on_hopper<Scaling::Block, Fp16, WideFor::Rows>,
    multiply_scaled_on_hopper<Scaling::Block, float, WideFor::Rows>,
    multiply_scaled_on_hopper<Scaling::Block, Bf16, WideFor::ManyRows>,
    multiply_scaled_on_hopper<Scaling::Block, Fp16, WideFor::ManyRows>,
    multiply_scaled_on_hopper<Scaling::Block, float, WideFor::ManyRows>,
    multiply_scaled_on_hopper<Scaling::Mxfp8, Bf16, WideFor::Rows>,
    multiply_scaled_on_hopper<Scaling::Mxfp8, Fp16, WideFor::Rows>,
    multiply_scaled_on_hopper<Scaling::Mxfp8, float, WideFor::Rows>,
    multiply_scaled_on_hopper<Scaling::Mxfp8, Bf16, WideFor::ManyRows>,
    multiply_scaled_on_hopper<Scaling::Mxfp8, Fp16, WideFor::ManyRows>,
    multiply_scaled_on_hopper<Scaling::Mxfp8, float, WideFor::ManyRows>};
constexpr std::size_t kHopper = 2 * kTypes;

bool is_weight(const ScaledProduct& call) {
  return call.kind == ProductKind::WeightGradient;
}

bool lies_well(const ScaledProduct& call) {
  const auto is_aligned = [](const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
  };
  const ScaledSides sides = operands_of(call);
  const bool codes_do = is_aligned(sides.a.codes) && is_aligned(sides.b.codes) &&
                        call.in % 16 == 0 && call.out % 16 == 0;
  if (!is_weight(call)) {
    return codes_do && is_aligned(call.result) && is_aligned(sides.b.scales);
  }
  return codes_do && is_aligned(sides.a.scales) && is_aligned(sides.b.scales);
}

}  // namespace

Launch<ScaledProduct> launch_of(const ScaledProduct& call) {
  const auto limits = device_limits();
  if (!limits) return {.asked = limits.error()};
  const auto type = static_cast<std::size_t>(call.type);
  if (type >= kTypes) return {};
  const run::GroupedProduct as = seen(call);
  const bool on_hopper = kHasHopper && limits->capability == 9 && lies_well(call);
  if (!on_hopper) {
    return {.kernel = kKernels[static_cast<std::size_t>(call.scaling) * kTypes + type],
            .blocks = blocks_for(most_tiles<kPlainSide, kPlainSide>(as)),
            .threads = kPlainThreads};
  }
  const std::size_t scaling = call.scaling == Scaling::Block ? 0 : 2 * kTypes;
  return {.kernel = kKernels[kHopper + scaling + (is_weight(call) ? kTypes : 0) + type],
          .blocks = std::clamp<std::int64_t>(most_tiles<kWideHigh, kWideAcross>(as), 1,
                                             limits->multiprocessors),
          .threads = kWideThreads,
          .shared_bytes =
              scaled_bytes(call.scaling, is_weight(call) ? WideFor::ManyRows : WideFor::Rows),
          .at_once = limits->multiprocessors};
}

Kernels<ScaledProduct> kernels_of(std::type_identity<ScaledProduct>) {
  return kKernels;
}

}  // namespace capo::gpu
