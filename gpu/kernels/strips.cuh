// A tile of 128 x 128 numbers in the registers of a block, and the tensors that it comes from: rows
// as they lie or as others name them, SwiGLU of them, or its gradient.
//
// Each of 256 threads has eight neighbours of eight rows, 16 apart: sixteen threads have a row.
// Numbers beyond the rows and columns that are there are zeros. Where all rows lie on 16 bytes, all
// loads of a thread are asked for before the first is waited for, and none has a branch; elsewhere
// numbers are read one by one.
//
// Numbers that are made are rounded to the tensor's type, and are to the bit what activations.cu
// writes. Tested by codes_test.cpp.

#pragma once

#include "gpu/kernels/elements.cuh"

#include <cstdint>

namespace capo::gpu {

inline constexpr int kTileSide = 128;
inline constexpr int kTileThreads = 256;
inline constexpr int kStrips = 8;
inline constexpr int kThreadsOfRow = kTileSide / 8;
inline constexpr int kRowsAtOnce = kTileThreads / kThreadsOfRow;

/// Eight neighbours. They are held as they lie, since each number in a register of its own would be
/// too many.
template <typename T>
struct RowStrip {
  uint4 words[sizeof(T) / 2];

  [[nodiscard]] __device__ Eight numbers() const {
    T at[8];
    memcpy(at, words, sizeof words);
    Eight eight;
#pragma unroll
    for (int i = 0; i < 8; ++i) eight.at[i] = to_float(at[i]);
    return eight;
  }
};
template <typename T>
struct TileStrips {
  RowStrip<T> rows[kStrips];
};

template <typename T>
__device__ RowStrip<T> strip_of(const Eight& eight) {
  T at[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) at[i] = round_to<T>(eight.at[i]);
  RowStrip<T> strip;
  memcpy(strip.words, at, sizeof at);
  return strip;
}

/// Those that number(i) gives, as they lie.
template <typename T, typename Number>
__device__ RowStrip<T> strip_of_each(Number number) {
  T at[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) at[i] = number(i);
  RowStrip<T> strip;
  memcpy(strip.words, at, sizeof at);
  return strip;
}

__device__ inline int first_row_of_thread() {
  return static_cast<int>(threadIdx.x) / kThreadsOfRow;
}
__device__ inline int column_of_thread() {
  return static_cast<int>(threadIdx.x) % kThreadsOfRow * 8;
}

/// Eight neighbours, all there or none.
template <typename T>
__device__ RowStrip<T> load_strip(const T* from, bool is_there) {
  RowStrip<T> strip{};
  if (is_there) strip = *reinterpret_cast<const RowStrip<T>*>(from);
  return strip;
}
/// So many of eight neighbours, one by one.
template <typename T>
__device__ RowStrip<T> load_some(const T* from, int there) {
  return strip_of_each<T>([&](int i) { return i < there ? from[i] : round_to<T>(0.0F); });
}

/// A tile's first row and column, and how many of each are there.
struct TilePlace {
  std::int64_t row = 0;
  int column = 0;
  int rows = 0;
  int columns = 0;
};

// A source of rows has Raw, what a strip is made of; load(), for the strip at a row and column of
// which so many numbers are there; made(); and kAtOnce, strips that are loaded before one is made.
// kWell says that lies_well().

/// (rows, columns) as they lie.
template <typename T>
struct PlainRows {
  static constexpr int kAtOnce = kStrips;
  using Raw = RowStrip<T>;

  const T* x;
  std::int64_t columns;

  [[nodiscard]] __device__ bool lies_well() const { return is_aligned(x) && columns % 8 == 0; }
  template <bool kWell>
  [[nodiscard]] __device__ Raw load(std::int64_t row, int column, int there) const {
    const T* const from = x + row * columns + column;
    return kWell ? load_strip(from, there > 0) : load_some(from, there);
  }
  template <bool kWell>
  [[nodiscard]] __device__ RowStrip<T> made(const Raw& raw, int) const {
    return raw;
  }
};

/// Rows that are named one by one.
template <typename T>
struct GatheredRows {
  static constexpr int kAtOnce = kStrips;
  using Raw = RowStrip<T>;

  PlainRows<T> rows;
  const std::int64_t* sources;

  [[nodiscard]] __device__ bool lies_well() const { return rows.lies_well(); }
  template <bool kWell>
  [[nodiscard]] __device__ Raw load(std::int64_t row, int column, int there) const {
    return rows.template load<kWell>(there > 0 ? sources[row] : 0, column, there);
  }
  template <bool kWell>
  [[nodiscard]] __device__ RowStrip<T> made(const Raw& raw, int) const {
    return raw;
  }
};

/// SwiGLU of rows of twice as many columns.
template <typename T>
struct GatedRows {
  static constexpr int kAtOnce = 4;
  struct Raw {
    RowStrip<T> gate;
    RowStrip<T> linear;
    float probability;
  };

  const T* x;
  std::int64_t columns;
  const float* probabilities;

  [[nodiscard]] __device__ bool lies_well() const { return is_aligned(x) && columns % 8 == 0; }
  template <bool kWell>
  [[nodiscard]] __device__ Raw load(std::int64_t row, int column, int there) const {
    const T* const gate = x + row * 2 * columns + column;
    const T* const linear = gate + columns;
    return {.gate = kWell ? load_strip(gate, there > 0) : load_some(gate, there),
            .linear = kWell ? load_strip(linear, there > 0) : load_some(linear, there),
            .probability = there > 0 ? factor_of(probabilities, row) : 1.0F};
  }
  template <bool kWell>
  [[nodiscard]] __device__ RowStrip<T> made(const Raw& raw, int) const {
    return strip_of<T>(swiglu<T>(raw.gate.numbers(), raw.linear.numbers(), raw.probability));
  }
};

/// The gradient of SwiGLU: `half` columns of the gates, and as many of the linear parts.
template <typename T>
struct GatedGradientRows {
  static constexpr int kAtOnce = 2;
  struct Raw {
    RowStrip<T> gate;
    RowStrip<T> linear;
    RowStrip<T> incoming;
    float probability;
  };

  const T* x;
  const T* dy;
  int half;
  const float* probabilities;

  [[nodiscard]] __device__ bool lies_well() const {
    return is_aligned(x) && is_aligned(dy) && half % 8 == 0;
  }
  template <bool kWell>
  [[nodiscard]] __device__ Raw load(std::int64_t row, int column, int there) const {
    const T* const gates = x + row * 2 * half;
    const T* const incoming = dy + row * half;
    const float probability = there > 0 ? factor_of(probabilities, row) : 1.0F;
    if constexpr (kWell) {
      const int from = column < half ? column : column - half;
      // The gradient of a linear part needs no linear part.
      return {.gate = load_strip(gates + from, there > 0),
              .linear = load_strip(gates + half + from, there > 0 && column < half),
              .incoming = load_strip(incoming + from, there > 0),
              .probability = probability};
    }
    const auto some_of = [&](const T* row_of) {
      return strip_of_each<T>([&](int i) {
        const int from = column + i < half ? column + i : column + i - half;
        return i < there ? row_of[from] : round_to<T>(0.0F);
      });
    };
    return {.gate = some_of(gates),
            .linear = some_of(gates + half),
            .incoming = some_of(incoming),
            .probability = probability};
  }
  template <bool kWell>
  [[nodiscard]] __device__ RowStrip<T> made(const Raw& raw, int column) const {
    const Eight gate = raw.gate.numbers();
    const Eight linear = raw.linear.numbers();
    const Eight incoming = raw.incoming.numbers();
    Eight result;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const SwiGluSlopes slopes =
          swiglu_slopes<T>(gate.at[i], linear.at[i], incoming.at[i], raw.probability);
      const bool of_gate = column + (kWell ? 0 : i) < half;
      result.at[i] = of_gate ? slopes.gate : slopes.linear;
    }
    return strip_of<T>(result);
  }
};

template <bool kWell, typename T, typename Source>
__device__ TileStrips<T> make_strips(const Source& source, const TilePlace& tile) {
  constexpr int kAtOnce = kWell ? Source::kAtOnce : 1;
  const int column = column_of_thread();
  TileStrips<T> strips;
#pragma unroll
  for (int first = 0; first < kStrips; first += kAtOnce) {
    typename Source::Raw raw[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int row = first_row_of_thread() + (first + i) * kRowsAtOnce;
      raw[i] = source.template load<kWell>(tile.row + row, tile.column + column,
                                           row < tile.rows ? tile.columns - column : 0);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      strips.rows[first + i] = source.template made<kWell>(raw[i], tile.column + column);
    }
  }
  return strips;
}

/// The tile's numbers; for a whole block.
template <typename T, typename Source>
__device__ TileStrips<T> strips_of(const Source& source, const TilePlace& tile) {
  return source.lies_well() ? make_strips<true, T>(source, tile)
                            : make_strips<false, T>(source, tile);
}

}  // namespace capo::gpu
