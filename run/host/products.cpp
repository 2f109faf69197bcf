// Products of matrices: c = a b, where the three kinds differ only in what a and b are, and which
// of them is read as if transposed.
//
// The order of additions is part of the result: an element of c starts at zero and adds in
// ascending order of the summed index, with no more than one sum. So the elements of c that
// advance together are a tile of kHigh rows and kWide columns, in registers. Its operands are
// copied before, as floats, in the order in which the tile reads them: a in strips of kHigh rows, b
// in strips of kWide columns, both padded with zeros whose products are not stored. All loops over
// a tile have constant bounds, so that the compiler vectorises them at any size of the matrices.

#include "core/base/index.h"
#include "run/host/parts.h"
#include "run/kernels/codes.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace capo::run::host {

namespace {

constexpr std::int64_t kHigh = 2;
constexpr std::int64_t kWide = 8;
using Tile = std::array<std::array<float, kWide>, kHigh>;

// A matrix in the engine's memory; a step is in elements, from a row or a column to the next.
template <typename T>
struct Matrix {
  T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_step = 0;
  std::int64_t column_step = 1;

  [[nodiscard]] Matrix transposed() const { return {data, columns, rows, column_step, row_step}; }
  [[nodiscard]] T& at(std::int64_t row, std::int64_t column) const {
    return data[row * row_step + column * column_step];
  }
};

template <typename T>
Matrix<T> contiguous(void* data, std::int64_t first, std::int64_t rows, std::int64_t columns) {
  return {static_cast<T*>(data) + first * columns, rows, columns, columns};
}

// Copies columns [first, first + kWidth) of the matrix, row after row.
template <std::int64_t kWidth, typename T>
void copy_strip(const Matrix<T>& matrix, std::int64_t first, float* strip) {
  const std::int64_t used = std::min(kWidth, matrix.columns - first);
  for (std::int64_t row = 0; row < matrix.rows; ++row, strip += kWidth) {
    for (std::int64_t i = 0; i < used; ++i) strip[i] = to_float(matrix.at(row, first + i));
    std::fill(strip + used, strip + kWidth, 0.0F);
  }
}

Tile multiply(const float* a, const float* b, std::int64_t depth) {
  Tile tile{};
  for (std::int64_t k = 0; k < depth; ++k, a += kHigh, b += kWide) {
    for (std::size_t row = 0; row < kHigh; ++row) {
      for (std::size_t column = 0; column < kWide; ++column) {
        tile[row][column] += a[row] * b[column];
      }
    }
  }
  return tile;
}

template <typename C>
void store(const Tile& tile, const Matrix<C>& c, std::int64_t row, std::int64_t column,
           Write write) {
  const std::int64_t high = std::min(kHigh, c.rows - row);
  const std::int64_t wide = std::min(kWide, c.columns - column);
  for (std::int64_t i = 0; i < high; ++i) {
    for (std::int64_t j = 0; j < wide; ++j) {
      const float sum = tile[as_index(i)][as_index(j)];
      put(c.at(row + i, column + j), sum, write);
    }
  }
}

// The copies of operands. They are kept from group to group to reuse their memory.
struct Strips {
  std::vector<float> a;  // all strips of a
  std::vector<float> b;  // one strip of b
};

// Operands of a product; sums go on through those of several.
template <typename T>
struct Operands {
  Matrix<T> a;
  Matrix<T> b;
};

// It stays a function of its own: within its callers the tile would not stay in registers.
template <typename T, typename C>
[[gnu::noinline]] void multiply(std::span<const Operands<T>> list, const Matrix<C>& c, Write write,
                                Strips& strips) {
  std::int64_t depth = 0;
  for (const Operands<T>& operands : list) depth += operands.a.columns;
  const std::int64_t strip_size = depth * kHigh;
  const std::int64_t count = (c.rows + kHigh - 1) / kHigh;
  strips.a.resize(as_index(count * strip_size));
  strips.b.resize(as_index(depth * kWide));
  for (std::int64_t i = 0; i < count; ++i) {
    float* strip = strips.a.data() + i * strip_size;
    for (const Operands<T>& operands : list) {
      copy_strip<kHigh>(operands.a.transposed(), i * kHigh, strip);
      strip += operands.a.columns * kHigh;
    }
  }
  for (std::int64_t column = 0; column < c.columns; column += kWide) {
    float* strip = strips.b.data();
    for (const Operands<T>& operands : list) {
      copy_strip<kWide>(operands.b, column, strip);
      strip += operands.a.columns * kWide;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const Tile tile = multiply(strips.a.data() + i * strip_size, strips.b.data(), depth);
      store(tile, c, i * kHigh, column, write);
    }
  }
}

template <typename T>
void compute_rows(const GroupedProduct& call) {
  Strips strips;
  for_each_group(call.rows, [&](std::int64_t group, std::int64_t first, std::int64_t end) {
    if (first == end) return;
    const Matrix<T> x = contiguous<T>(call.x, first, end - first, call.in);
    const Matrix<T> y = contiguous<T>(call.y, first, end - first, call.out);
    const Matrix<T> w = contiguous<T>(call.w[group], 0, call.out, call.in);
    const bool forward = call.kind == GroupedProduct::Kind::Forward;
    const Operands<T> operands = forward ? Operands<T>{x, w.transposed()} : Operands<T>{y, w};
    multiply<T>({&operands, 1}, forward ? y : x, Write::Overwrite, strips);
  });
}

// Adds the operands of a batch, group by group, to those of the batches before.
template <typename T>
void add_operands(const GroupedProduct& call, const Rows& rows, void* x, void* y,
                  std::vector<std::vector<Operands<T>>>& of_groups) {
  for_each_group(rows, [&](std::int64_t group, std::int64_t first, std::int64_t end) {
    of_groups[as_index(group)].push_back(
        {.a = contiguous<T>(y, first, end - first, call.out).transposed(),
         .b = contiguous<T>(x, first, end - first, call.in)});
  });
}

template <typename T, typename G>
void compute_gradients(const GroupedProduct& call) {
  const std::int64_t groups = call.rows.sizes == nullptr ? 1 : call.rows.groups;
  std::vector<std::vector<Operands<T>>> of_groups(as_index(groups));
  add_operands<T>(call, call.rows, call.x, call.y, of_groups);
  for (int at = 0; at < call.further; ++at) {
    const GroupedProduct::Batch& batch = call.batches[at];
    const Rows rows{.count = batch.count, .groups = call.rows.groups, .sizes = batch.sizes};
    add_operands<T>(call, rows, batch.x, batch.y, of_groups);
  }
  Strips strips;
  for (std::int64_t group = 0; group < groups; ++group) {
    const auto& list = of_groups[as_index(group)];
    const bool empty = std::all_of(list.begin(), list.end(),
                                   [](const Operands<T>& each) { return each.b.rows == 0; });
    if (empty && call.write == Write::Add) continue;
    const Matrix<G> dw = contiguous<G>(call.w[group], 0, call.out, call.in);
    multiply<T>(list, dw, call.write, strips);
  }
}

void compute_product(const GroupedProduct& call) {
  with_element(call.type, [&](auto element) {
    if (call.kind != GroupedProduct::Kind::WeightGradient) {
      return compute_rows<decltype(element)>(call);
    }
    with_element(call.gradient_type, [&](auto gradient) {
      compute_gradients<decltype(element), decltype(gradient)>(call);
    });
  });
}

// An operand of codes: vectors from `codes` on, `step` apart, and the scales of its first block.
struct ScaledOperand {
  const std::uint8_t* codes = nullptr;
  std::int64_t count = 0;
  std::int64_t depth = 0;
  std::int64_t step = 0;
  const std::byte* scales = nullptr;
  std::int64_t scale_step = 0;  // from a block of depth to the next, in scales
  std::int64_t width = 1;       // vectors that share a scale
};

float scale_at(const std::byte* scales, std::int64_t at, Scaling scaling) {
  if (scaling == Scaling::Mxfp8) return to_float(E8m0{std::to_integer<std::uint8_t>(scales[at])});
  float scale = 0;
  std::memcpy(&scale, scales + at * scale_bytes(scaling), sizeof scale);
  return scale;
}

// The numbers that an operand stands for, (count, depth).
std::vector<float> values_of(const ScaledOperand& operand, Scaling scaling) {
  std::vector<float> values;
  for (std::int64_t v = 0; v < operand.count; ++v) {
    for (std::int64_t k = 0; k < operand.depth; ++k) {
      const std::int64_t block = k / block_depth(scaling);
      const std::int64_t at = block * operand.scale_step + v / operand.width;
      values.push_back(to_float(E4m3{operand.codes[v * operand.step + k]}) *
                       scale_at(operand.scales, at, scaling));
    }
  }
  return values;
}

// Rows [first, end) of codes along the columns.
ScaledOperand some_rows(const ScaledProduct& call, const Codes& of, std::int64_t columns,
                        std::int64_t first, std::int64_t end) {
  return {.codes = of.codes + first * columns,
          .count = end - first,
          .depth = columns,
          .step = columns,
          .scales = static_cast<const std::byte*>(of.scales) + first * scale_bytes(call.scaling),
          .scale_step = call.rows.count};
}

// The columns of a group whose depth begins at `from`.
ScaledOperand all_columns(const ScaledProduct& call, const Codes& of, std::int64_t columns,
                          std::int64_t from, std::int64_t depth) {
  const std::int64_t block = from / block_depth(call.scaling);
  return {.codes = of.codes + from,
          .count = columns,
          .depth = depth,
          .step = depth_of(call.rows),
          .scales = static_cast<const std::byte*>(of.scales) +
                    block * columns * scale_bytes(call.scaling),
          .scale_step = columns};
}

ScaledOperand weights(const ScaledProduct& call, std::int64_t count, std::int64_t depth,
                      std::int64_t group) {
  const std::int64_t across = whole_blocks(count, block_width(call.scaling));
  const std::int64_t scales =
      bytes_of_scales(call.scaling, count, depth, block_width(call.scaling));
  return {.codes = call.w.codes + group * count * depth,
          .count = count,
          .depth = depth,
          .step = depth,
          .scales = static_cast<const std::byte*>(call.w.scales) + group * scales,
          .scale_step = across,
          .width = block_width(call.scaling)};
}

template <typename C>
void multiply(const ScaledProduct& call, const ScaledOperand& a, const ScaledOperand& b, C* c,
              Strips& strips) {
  std::vector<float> of_a = values_of(a, call.scaling);
  std::vector<float> of_b = values_of(b, call.scaling);
  const Operands<float> operands{contiguous<float>(of_a.data(), 0, a.count, a.depth),
                                 contiguous<float>(of_b.data(), 0, b.count, b.depth).transposed()};
  const bool adds = call.kind == GroupedProduct::Kind::WeightGradient && call.write == Write::Add;
  multiply<float>({&operands, 1}, contiguous<C>(c, 0, a.count, b.count),
                  adds ? Write::Add : Write::Overwrite, strips);
}

template <typename C>
void compute_scaled(const ScaledProduct& call) {
  using enum GroupedProduct::Kind;
  Strips strips;
  std::int64_t from = 0;
  for_each_group(call.rows, [&](std::int64_t group, std::int64_t first, std::int64_t end) {
    const std::int64_t depth = end - first;
    if (call.kind == WeightGradient) {
      if (depth > 0 || call.write == Write::Overwrite) {
        multiply(call, all_columns(call, call.y, call.out, from, depth),
                 all_columns(call, call.x, call.in, from, depth),
                 static_cast<C*>(call.gradients[group]), strips);
      }
      from += whole_blocks(depth, kGroupDepth) * kGroupDepth;
      return;
    }
    const bool forward = call.kind == Forward;
    const std::int64_t count = forward ? call.out : call.in;
    const std::int64_t summed = forward ? call.in : call.out;
    multiply(call, some_rows(call, forward ? call.x : call.y, summed, first, end),
             weights(call, count, summed, group), static_cast<C*>(call.result) + first * count,
             strips);
  });
}

}  // namespace

void compute(const ScaledProduct& call) {
  with_element(call.type, [&](auto zero) { compute_scaled<decltype(zero)>(call); });
}

void compute(const GroupedProduct& call) {
  for_each_part(call, [&](const auto& part) {
    using Part = std::decay_t<decltype(part)>;
    if constexpr (std::is_same_v<Part, GroupedProduct>) {
      compute_product(part);
    } else if constexpr (std::is_same_v<Part, SwiGluGradient>) {
      if (call.epilogue.leaves_sums) return compute_leaving_sums(part, call.x);
      compute(part);
    } else {
      compute(part);
    }
  });
}

}  // namespace capo::run::host
