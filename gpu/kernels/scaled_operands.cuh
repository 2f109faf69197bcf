// The operands of products of codes. Whatever the kind, both lie along the depth:
//
//   kind            C      rows are        A                  B                 depth
//   Forward         y      rows of x       x along columns    w along in        in
//   InputGradient   dx     rows of dy      dy along columns   w along out       out
//   WeightGradient  dw     columns of dy   dy along rows      x along rows      a group's rows
//
// So there are two kinds of kernels and not three: an InputGradient is a Forward with other names.
// `seen` is the call as tiles and results see it (product_tiles.cuh), without operands. The depths
// of a WeightGradient are whole blocks, whose codes behind a group's rows are zeros. Tested by
// tests/gpu/codes_test.cpp.

#pragma once

#include "gpu/kernels/codes.cuh"
#include "gpu/kernels/product_tiles.cuh"

#include <cstdint>

namespace capo::gpu {

/// The call of a kernel, with its columns and its depth named as a Forward's.
__host__ __device__ inline run::GroupedProduct seen(const run::ScaledProduct& call) {
  run::GroupedProduct as;
  as.type = call.type;
  as.gradient_type = call.type;
  as.rows = call.rows;
  as.write = call.write;
  as.in = call.in;
  as.out = call.out;
  as.w = call.gradients;
  if (call.kind == ProductKind::WeightGradient) {
    as.kind = ProductKind::WeightGradient;
    return as;
  }
  if (call.kind == ProductKind::InputGradient) {
    as.in = call.out;
    as.out = call.in;
  }
  as.kind = ProductKind::Forward;
  as.write = run::Write::Overwrite;
  as.y = call.result;
  return as;
}

/// The operands A and B of a call, over all groups.
struct ScaledSides {
  run::Codes a;
  run::Codes b;
};
__host__ __device__ inline ScaledSides operands_of(const run::ScaledProduct& call) {
  if (call.kind == ProductKind::WeightGradient) return {call.y, call.x};
  return {call.kind == ProductKind::Forward ? call.x : call.y, call.w};
}

/// Blocks of kGroupDepth before those of a group.
struct DepthGroups {
  int first_block[kMostGroups + 1];
};
/// For one whole warp.
__device__ inline void find_depths(const run::Rows& rows, DepthGroups& depths) {
  constexpr int kDeep = static_cast<int>(run::kGroupDepth);
  write_sums(groups_of(rows), depths.first_block,
             [&](int group) { return (size_of(rows, group) + kDeep - 1) / kDeep; });
}

/// The vectors of one operand of one group.
template <run::Scaling kScaling>
struct ScaledOperand {
  const std::uint8_t* codes;
  std::int64_t step;  ///< codes from a vector to the next
  const void* scales;
  std::int64_t first_scale;
  std::int64_t scale_step;  ///< scales from a block of depth to the next
  int width;                ///< vectors that share a scale
  int count;
  int depth;

  [[nodiscard]] __device__ bool is_along_depth() const { return true; }
  [[nodiscard]] __device__ float scale(int one, int block) const {
    return scale_at<kScaling>(scales, first_scale + block * scale_step + one / width);
  }
  [[nodiscard]] __device__ float number(int one, int at) const {
    constexpr int kDeep = static_cast<int>(run::block_depth(kScaling));
    return float_of_e4m3(codes[one * step + at]) * scale(one, at / kDeep);
  }
};

template <run::Scaling kScaling>
__device__ ScaledOperand<kScaling> scaled_rows(const run::Codes& codes,
                                               const run::GroupedProduct& call,
                                               const RowGroups& groups, int group) {
  const int first = groups.first_row[group];
  return {codes.codes + first * call.in,
          call.in,
          codes.scales,
          first,
          call.rows.count,
          1,
          groups.first_row[group + 1] - first,
          static_cast<int>(call.in)};
}

template <run::Scaling kScaling>
__device__ ScaledOperand<kScaling> scaled_weights(const run::Codes& codes,
                                                  const run::GroupedProduct& call, int group) {
  constexpr int kDeep = static_cast<int>(run::block_depth(kScaling));
  constexpr int kWide = static_cast<int>(run::block_width(kScaling));
  const std::int64_t across = run::whole_blocks(call.out, kWide);
  return {codes.codes + group * call.out * call.in,
          call.in,
          codes.scales,
          group * across * run::whole_blocks(call.in, kDeep),
          across,
          kWide,
          static_cast<int>(call.out),
          static_cast<int>(call.in)};
}

template <run::Scaling kScaling>
__device__ ScaledOperand<kScaling> scaled_columns(const run::Codes& codes,
                                                  const run::GroupedProduct& call,
                                                  const DepthGroups& depths, int group,
                                                  int columns) {
  constexpr int kDeep = static_cast<int>(run::block_depth(kScaling));
  constexpr int kGroup = static_cast<int>(run::kGroupDepth);
  const std::int64_t first = std::int64_t{depths.first_block[group]} * kGroup;
  return {codes.codes + first,
          run::depth_of(call.rows),
          codes.scales,
          first / kDeep * columns,
          columns,
          1,
          columns,
          (depths.first_block[group + 1] - depths.first_block[group]) * kGroup};
}

}  // namespace capo::gpu
