// Products whose operands are codes of eight bits with a scale for each block: how blocks lie, the
// calls that make codes of rows and of weights, and the product of them. What a code is and how a
// block gets its scale is in codes.h.
//
// Tested on the host by tests/run/host/codes_test.cpp.

#pragma once

#include "core/model/model.h"
#include "run/kernels/draw.h"
#include "run/kernels/grouped_product.h"

#include <cstdint>

namespace capo::run {

/// How blocks get their scales, as codes.h says it.
enum class Scaling : std::uint8_t {
  Block,  ///< 128 codes along the depth; of weights 128 x 128
  Mxfp8,  ///< 32 codes along the depth
};
/// Codes of a block along the depth.
[[nodiscard]] CAPO_HOST_DEVICE constexpr std::int64_t block_depth(Scaling scaling) {
  return scaling == Scaling::Block ? 128 : 32;
}
/// Vectors that share a scale in a matrix of weights.
[[nodiscard]] CAPO_HOST_DEVICE constexpr std::int64_t block_width(Scaling scaling) {
  return scaling == Scaling::Block ? 128 : 1;
}
[[nodiscard]] CAPO_HOST_DEVICE constexpr std::int64_t scale_bytes(Scaling scaling) {
  return scaling == Scaling::Block ? 4 : 1;
}
[[nodiscard]] CAPO_HOST_DEVICE constexpr std::int64_t whole_blocks(std::int64_t count,
                                                                   std::int64_t of) {
  return (count + of - 1) / of;
}

/// Vectors of E4m3 codes along a depth, that a product sums over: `codes` of a vector lie side by
/// side, and vectors behind one another. Scales are floats or E8m0, those of one block of the depth
/// side by side.
struct Codes {
  std::uint8_t* codes = nullptr;
  void* scales = nullptr;
};

/// Bytes of the scales of `count` vectors of a depth, of which `width` share one.
[[nodiscard]] constexpr std::int64_t bytes_of_scales(Scaling scaling, std::int64_t count,
                                                     std::int64_t depth, std::int64_t width = 1) {
  return whole_blocks(depth, block_depth(scaling)) * whole_blocks(count, width) *
         scale_bytes(scaling);
}

/// Depths that are rows begin a group at a multiple of so many: no block is of two groups, and
/// codes of a group lie well. Codes between groups are zero.
inline constexpr std::int64_t kGroupDepth = 128;
/// Depth of all groups of rows together, whatever their sizes are.
[[nodiscard]] CAPO_HOST_DEVICE constexpr std::int64_t depth_of(const Rows& rows) {
  const std::int64_t most = rows.sizes == nullptr ? whole_blocks(rows.count, kGroupDepth)
                                                  : rows.count / kGroupDepth + rows.groups;
  return most * kGroupDepth;
}

/// Rows that are made as they are quantized, from x as SwiGlu, SwiGluGradient or Gather would, each
/// number rounded to the type before anything else. It spares their tensor, and a pass over memory.
struct RowsMade {
  enum class By : std::uint8_t {
    Nobody,          ///< x (rows, columns) is what is quantized
    SwiGlu,          ///< y (rows, columns) of x (rows, 2 * columns)
    SwiGluGradient,  ///< dx (rows, columns) of x (rows, columns) and dy (rows, columns / 2)
    Gather,          ///< row i is row sources[i] of x (from_rows, columns)
  };
  By by = By::Nobody;
  const float* probabilities = nullptr;   ///< one a row; null: 1
  const void* dy = nullptr;               ///< of a SwiGluGradient
  const std::int64_t* sources = nullptr;  ///< of a Gather, on the device: one a row
  std::int64_t from_rows = 0;             ///< likewise: that a source may name
};

/// Rows (rows, columns) as codes, for products that sum over their columns and for those that sum
/// over the rows.
struct QuantizeRows {
  Scaling scaling = Scaling::Block;
  DataType type = DataType::Bf16;
  Rows rows;
  std::int64_t columns = 0;
  const void* x = nullptr;
  RowsMade made = {};
  Codes along_columns;  ///< codes (rows, columns); without codes not wanted, like the next one
  Codes along_rows;     ///< codes (columns, depth_of(rows))
};

/// Weights (out, in) of each group as codes, for products that sum over `in` and over `out`. Groups
/// follow one another, and so do those of scales, each (blocks of depth, blocks of vectors).
struct QuantizeWeights {
  Scaling scaling = Scaling::Block;
  DataType type = DataType::Bf16;
  std::int64_t groups = 1;
  std::int64_t in = 0;
  std::int64_t out = 0;
  void* const* w = nullptr;  ///< on the device
  Codes along_in;            ///< codes (groups, out, in)
  Codes along_out;           ///< codes (groups, in, out)
};

/// A GroupedProduct whose operands are codes, each times its scale. Sums are in fp32; those of one
/// block of depth may be added before they are added to the others.
struct ScaledProduct {
  GroupedProduct::Kind kind = GroupedProduct::Kind::Forward;
  Scaling scaling = Scaling::Block;
  DataType type = DataType::Bf16;  ///< of what is written
  Write write = Write::Overwrite;  ///< of a WeightGradient; the others overwrite
  Rows rows;
  std::int64_t in = 0;
  std::int64_t out = 0;
  Codes x;                 ///< of a Forward along columns, of a WeightGradient along rows
  Codes y;                 ///< of an InputGradient along columns, of a WeightGradient along rows
  Codes w;                 ///< of a Forward along `in`, of an InputGradient along `out`
  void* result = nullptr;  ///< y of a Forward, x of an InputGradient
  void* const* gradients = nullptr;  ///< of a WeightGradient: on the device, one a group
};

}  // namespace capo::run
