// What products of codes read, in float64: each operand as the numbers that its codes stand for.
//
//   Block, (1, 100, 449)   ->   the scale is 2, and so (1, 96, 448): of 8 numbers between 64 and
//                               128 the codes have every eighth, and 224.5 is nearest to 224
//
// It is written from docs/fp8.md and from nothing else, with logarithms where kernels have bits, so
// that it stays a second opinion. Tested by coded_operands_test.cpp.

#pragma once

#include "run/reference/layer_parts.h"

#include <cstdint>

namespace capo::run::reference {

/// How a layer's products see their operands.
enum class Coding : std::uint8_t { None, Block, Mxfp8 };

/// (rows, columns), in blocks of columns.
[[nodiscard]] Values coded_rows(Coding coding, const Values& x, std::int64_t columns);
/// The rows of a product, in blocks of the rows of each group.
[[nodiscard]] Values coded_columns(Coding coding, const Product& p, const Values& x,
                                   std::int64_t columns);
/// (groups, out, in), in blocks of what a forward sums over, and of what the gradient of an input
/// does.
[[nodiscard]] Values coded_along_in(Coding coding, const Product& p, const Values& w);
[[nodiscard]] Values coded_along_out(Coding coding, const Product& p, const Values& w);

}  // namespace capo::run::reference
