// This file chooses the kernel that multiplies codes: on a device of sm_90 that of
// scaled_hopper.cuh for blocks of 128, or that of converted_hopper.cuh for blocks of 32, where
// codes lie as 16-byte copies need it; on one of sm_100 that of scaled_blackwell.cuh for blocks of
// 32, if machine code for sm_100a was built; else a plain one. Tested by tests/gpu/codes_test.cpp.

#include "core/base/result.h"
#include "gpu/kernels/converted_hopper.cuh"
#include "gpu/kernels/families.h"
#include "gpu/kernels/limits.h"
#include "gpu/kernels/product_plain.cuh"
#include "gpu/kernels/scaled_hopper.cuh"
#ifdef CAPO_SM100A
#include "gpu/kernels/scaled_blackwell.cuh"
#endif

#include <algorithm>
#include <cstdint>

namespace capo::gpu {

namespace {

using run::ScaledProduct;
using run::Scaling;

template <Scaling kScaling, typename C>
__device__ void multiply_scaled(const run::GroupedProduct& call, const ScaledOperand<kScaling>& a,
                                const ScaledOperand<kScaling>& b, C* c, const Tile& tile) {
  float sums[4][4] = {};
  plain::add_up(a, b, tile.row, tile.column, sums);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int row = tile.row + plain::row_of_thread() + i;
      const int column = tile.column + plain::column_of_thread() + j;
      if (row >= a.count || column >= b.count) continue;
      put(c[std::int64_t{row} * b.count + column], sums[i][j], call.write);
    }
  }
}

// A kernel for ScaledProduct.
template <Scaling kScaling, typename C>
__global__ void __launch_bounds__(kPlainThreads)
    multiply_scaled_plainly(const __grid_constant__ run::ScaledProduct given) {
  __shared__ GroupTiles tiles;
  __shared__ DepthGroups depths;
  const run::GroupedProduct call = seen(given);
  const ScaledSides sides = operands_of(given);
  const bool sums_rows = call.kind == ProductKind::WeightGradient;
  if (sums_rows && threadIdx.x >= 32 && threadIdx.x < 64) find_depths(call.rows, depths);
  find_tiles<kPlainSide, kPlainSide>(call, nullptr, tiles);
  for (TileWalk<kPlainSide, kPlainSide> walk(call, tiles); !walk.is_over(); walk.advance()) {
    const Tile tile = walk.tile();
    if (sums_rows) {
      const auto out = static_cast<int>(call.out);
      const auto in = static_cast<int>(call.in);
      multiply_scaled(call, scaled_columns<kScaling>(sides.a, call, depths, tile.group, out),
                      scaled_columns<kScaling>(sides.b, call, depths, tile.group, in),
                      static_cast<C*>(call.w[tile.group]), tile);
    } else {
      C* const y = static_cast<C*>(call.y) + tiles.first_row[tile.group] * call.out;
      multiply_scaled(call, scaled_rows<kScaling>(sides.a, call, tiles, tile.group),
                      scaled_weights<kScaling>(sides.b, call, tile.group), y, tile);
    }
  }
}

const Kernel<ScaledProduct> kKernels[] = {
    // Plain ones, by the scaling and then the type of the result.
    multiply_scaled_plainly<Scaling::Block, Bf16>,
    multiply_scaled_plainly<Scaling::Block, Fp16>,
    multiply_scaled_plainly<Scaling::Block, float>,
    multiply_scaled_plainly<Scaling::Mxfp8, Bf16>,
    multiply_scaled_plainly<Scaling::Mxfp8, Fp16>,
    multiply_scaled_plainly<Scaling::Mxfp8, float>,
    // On sm_90a, by the scaling: rows, and gradients of weights, by the type of the result.
    multiply_scaled_on_hopper<Bf16, WideFor::Rows>,
    multiply_scaled_on_hopper<Fp16, WideFor::Rows>,
    multiply_scaled_on_hopper<float, WideFor::Rows>,
    multiply_scaled_on_hopper<Bf16, WideFor::ManyRows>,
    multiply_scaled_on_hopper<Fp16, WideFor::ManyRows>,
    multiply_scaled_on_hopper<float, WideFor::ManyRows>,
    multiply_converted_on_hopper<Bf16, WideFor::Converted>,
    multiply_converted_on_hopper<Fp16, WideFor::Converted>,
    multiply_converted_on_hopper<float, WideFor::Converted>,
    multiply_converted_on_hopper<Bf16, WideFor::ConvertedSums>,
    multiply_converted_on_hopper<Fp16, WideFor::ConvertedSums>,
    multiply_converted_on_hopper<float, WideFor::ConvertedSums>,
#ifdef CAPO_SM100A
    // On sm_100a, by the type of the result.
    multiply_scaled_on_blackwell<Bf16>,
    multiply_scaled_on_blackwell<Fp16>,
    multiply_scaled_on_blackwell<float>,
#endif
};
constexpr std::size_t kHopper = 2 * kTypes;
#ifdef CAPO_SM100A
constexpr std::size_t kBlackwell = kHopper + 4 * kTypes;
#endif

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
#ifdef CAPO_SM100A
  if (limits->capability == 10 && limits->minor == 0 && call.scaling == Scaling::Mxfp8) {
    return {.kernel = kKernels[kBlackwell + type],
            .blocks = std::clamp<std::int64_t>(most_tiles<kBlackwellSide, kBlackwellSide>(as), 1,
                                               limits->multiprocessors),
            .threads = kBlackwellThreads};
  }
#endif
  const bool on_hopper = kHasHopper && limits->capability == 9 && lies_well(call);
  if (!on_hopper) {
    return {.kernel = kKernels[static_cast<std::size_t>(call.scaling) * kTypes + type],
            .blocks = blocks_for(most_tiles<kPlainSide, kPlainSide>(as)),
            .threads = kPlainThreads};
  }
  const bool is_block = call.scaling == Scaling::Block;
  return {
      .kernel =
          kKernels[kHopper + (is_block ? 0 : 2 * kTypes) + (is_weight(call) ? kTypes : 0) + type],
      .blocks = std::clamp<std::int64_t>(most_tiles<kWideHigh, kWideAcross>(as), 1,
                                         limits->multiprocessors),
      .threads = is_block ? kWideThreads : kConvertedThreads,
      .shared_bytes =
          is_block ? scaled_bytes(is_weight(call) ? WideFor::ManyRows : WideFor::Rows)
                   : converted_bytes(is_weight(call) ? WideFor::ConvertedSums : WideFor::Converted),
      .at_once = limits->multiprocessors};
}

Kernels<ScaledProduct> kernels_of(std::type_identity<ScaledProduct>) {
  return kKernels;
}

}  // namespace capo::gpu
