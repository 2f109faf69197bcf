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

#include <algorithm>
#include <array>
#include <cstddef>
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

template <typename A, typename B, typename C>
void multiply(const Matrix<A>& a, const Matrix<B>& b, const Matrix<C>& c, Write write,
              Strips& strips) {
  const std::int64_t depth = a.columns;
  const std::int64_t strip_size = depth * kHigh;
  const std::int64_t count = (a.rows + kHigh - 1) / kHigh;
  strips.a.resize(as_index(count * strip_size));
  strips.b.resize(as_index(depth * kWide));
  for (std::int64_t i = 0; i < count; ++i) {
    copy_strip<kHigh>(a.transposed(), i * kHigh, strips.a.data() + i * strip_size);
  }
  for (std::int64_t column = 0; column < c.columns; column += kWide) {
    copy_strip<kWide>(b, column, strips.b.data());
    for (std::int64_t i = 0; i < count; ++i) {
      const Tile tile = multiply(strips.a.data() + i * strip_size, strips.b.data(), depth);
      store(tile, c, i * kHigh, column, write);
    }
  }
}

template <typename T, typename G>
void compute(const GroupedProduct& call) {
  Strips strips;
  for_each_group(call.rows, [&](std::int64_t group, std::int64_t first, std::int64_t end) {
    const bool is_gradient = call.kind == GroupedProduct::Kind::WeightGradient;
    if (first == end && !(is_gradient && call.write == Write::Overwrite)) return;
    const Matrix<T> x = contiguous<T>(call.x, first, end - first, call.in);
    const Matrix<T> y = contiguous<T>(call.y, first, end - first, call.out);
    if (is_gradient) {
      const Matrix<G> dw = contiguous<G>(call.w[group], 0, call.out, call.in);
      return multiply(y.transposed(), x, dw, call.write, strips);
    }
    const Matrix<T> w = contiguous<T>(call.w[group], 0, call.out, call.in);
    if (call.kind == GroupedProduct::Kind::Forward) {
      return multiply(x, w.transposed(), y, Write::Overwrite, strips);
    }
    multiply(y, w, x, Write::Overwrite, strips);
  });
}

}  // namespace

void compute(const GroupedProduct& call) {
  with_element(call.type, [&](auto element) {
    if (call.kind != GroupedProduct::Kind::WeightGradient) {
      return compute<decltype(element), float>(call);
    }
    with_element(call.gradient_type,
                 [&](auto gradient) { compute<decltype(element), decltype(gradient)>(call); });
  });
}

}  // namespace capo::run::host
