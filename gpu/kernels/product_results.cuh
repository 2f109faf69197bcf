// The sums of a warp, from the registers in which tensor cores leave them to memory: rounded once,
// or added first to what is there.
//
// Of eight neighbouring columns each lane of four holds two. Lanes exchange them so that each has
// 16 bytes side by side and four lanes have 64: whole sectors, and few instructions. Where the
// result is added to, all of what is there is asked for before the first of it is used.
//
// An epilogue needs a result's gate and the linear part that belongs to it in the same lane. So a
// tile of it has two sides of columns, left and right, half a tile each: those of the gate and
// those of the linear part, or neighbours if there is no gate.
//
// The gradients of a gate and a linear part both follow from the result at their column, and are
// written in its place. They read 16 bytes of either for each 16 of the result. A band's are asked
// for while the band before is worked on, and those of the first before there are sums.
//
// Columns are a multiple of 8 and C is aligned to 16 bytes. No shared memory. Tested by
// tests/gpu/products_test.cpp.

#pragma once

#include "gpu/kernels/elements.cuh"
#include "gpu/kernels/product_tiles.cuh"

#include <cstdint>

namespace capo::gpu {

inline constexpr int kWarpSide = 64;
/// Sums of a warp in pieces of 16 x 8: a lane has columns 2 (lane % 4) and the next, the first two
/// of row lane / 4 and the last two of the row eight further.
using Sums = float[kWarpSide / 16][kWarpSide / 8][4];

namespace results {

// Lane i of `kLanes` gets element i of each of them, in their order.
template <int kLanes, typename Word>
__device__ void exchange(Word (&words)[kLanes]) {
#pragma unroll
  for (int distance = 1; distance < kLanes; distance *= 2) {
    const bool is_high = (threadIdx.x & static_cast<unsigned>(distance)) != 0;
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      if ((i & distance) != 0) continue;
      const Word given = is_high ? words[i] : words[i + distance];
      const Word taken = __shfl_xor_sync(0xffffffffU, given, distance);
      if (is_high) {
        words[i] = taken;
      } else {
        words[i + distance] = taken;
      }
    }
  }
}

// How kLanes lanes that hold two elements each of kLanes times eight columns come to hold 16 bytes
// of one of these.
template <typename C>
struct Strip;

template <>
struct Strip<float> {
  static constexpr int kLanes = 2;
  /// Column of this lane's 16 bytes in the strip.
  static __device__ int column() {
    return static_cast<int>(threadIdx.x % 2 * 8 + threadIdx.x % 4 / 2 * 4);
  }
  static __device__ uint4 packed(const float2 (&pairs)[2]) {
    float first[2] = {pairs[0].x, pairs[1].x};
    float second[2] = {pairs[0].y, pairs[1].y};
    exchange(first);
    exchange(second);
    return make_uint4(__float_as_uint(first[0]), __float_as_uint(second[0]),
                      __float_as_uint(first[1]), __float_as_uint(second[1]));
  }
  static __device__ void unpack(const uint4& bytes, float2 (&pairs)[2]) {
    float first[2] = {__uint_as_float(bytes.x), __uint_as_float(bytes.z)};
    float second[2] = {__uint_as_float(bytes.y), __uint_as_float(bytes.w)};
    exchange(first);
    exchange(second);
    pairs[0] = make_float2(first[0], second[0]);
    pairs[1] = make_float2(first[1], second[1]);
  }
};

template <typename C>
struct HalfStrip {
  static constexpr int kLanes = 4;
  static __device__ int column() { return static_cast<int>(threadIdx.x % 4 * 8); }
  static __device__ uint4 packed(const float2 (&pairs)[4]) {
    std::uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const C both[2] = {round_to<C>(pairs[i].x), round_to<C>(pairs[i].y)};
      memcpy(&words[i], both, sizeof both);
    }
    exchange(words);
    return make_uint4(words[0], words[1], words[2], words[3]);
  }
  static __device__ void unpack(const uint4& bytes, float2 (&pairs)[4]) {
    std::uint32_t words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
    exchange(words);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      C both[2];
      memcpy(both, &words[i], sizeof both);
      pairs[i] = make_float2(to_float(both[0]), to_float(both[1]));
    }
  }
};

template <>
struct Strip<Bf16> : HalfStrip<Bf16> {};
template <>
struct Strip<Fp16> : HalfStrip<Fp16> {};

}  // namespace results

/// For a whole warp: 16 x kWarpSide elements of C from a row and a column on, as far as C goes.
template <run::Write kWrite, typename T, typename C>
__device__ void write_band(const Product<T, C>& product, int first_row, int first_column,
                           const float (&sums)[kWarpSide / 8][4]) {
  using Strip = results::Strip<C>;
  constexpr int kLanes = Strip::kLanes;
  constexpr int kStrips = kWarpSide / 8 / kLanes;
  constexpr bool kAdds = kWrite == run::Write::Add;
  const int row = first_row + static_cast<int>(threadIdx.x % 32 / 4);
  const int column = first_column + Strip::column();
  const std::int64_t columns = product.columns();
  C* const corner = product.c + row * columns + column;
  const auto at = [&](int half, int strip) {
    return reinterpret_cast<uint4*>(corner + half * 8 * columns + strip * kLanes * 8);
  };
  const auto is_there = [&](int half, int strip) {
    return row + half * 8 < product.rows() && column + strip * kLanes * 8 < columns;
  };
  uint4 before[2][kStrips];
#pragma unroll
  for (int part = 0; kAdds && part < 2 * kStrips; ++part) {
    const int half = part / kStrips;
    const int strip = part % kStrips;
    before[half][strip] = is_there(half, strip) ? *at(half, strip) : make_uint4(0, 0, 0, 0);
  }
#pragma unroll
  for (int part = 0; part < 2 * kStrips; ++part) {
    const int half = part / kStrips;
    const int strip = part % kStrips;
    float2 pairs[kLanes] = {};
    if constexpr (kAdds) Strip::unpack(before[half][strip], pairs);
#pragma unroll
    for (int p = 0; p < kLanes; ++p) {
      const float* const sum = sums[strip * kLanes + p] + half * 2;
      pairs[p] = kAdds ? make_float2(pairs[p].x + sum[0], pairs[p].y + sum[1])
                       : make_float2(sum[0], sum[1]);
    }
    const uint4 packed = Strip::packed(pairs);
    if (is_there(half, strip)) *at(half, strip) = packed;
  }
}

/// The epilogue of a group's rows; a pointer is null where the call has none.
template <typename T>
struct GroupEpilogue {
  const T* bias;
  const float* scales;
  T* gated;
  const float* probabilities;
};

template <typename T>
__device__ GroupEpilogue<T> epilogue_of(const run::GroupedProduct& call, const RowGroups& groups,
                                        int group) {
  const run::Epilogue& of = call.epilogue;
  const std::int64_t first = groups.first_row[group];
  const auto* bias = of.bias == nullptr ? nullptr : static_cast<const T*>(of.bias[group]);
  T* gated = static_cast<T*>(of.gated);
  return {bias, of.scales == nullptr ? nullptr : of.scales + first,
          gated == nullptr ? nullptr : gated + first * (call.out / 2),
          of.probabilities == nullptr ? nullptr : of.probabilities + first};
}

/// The first columns of both sides, and the first column behind the left one.
struct Sides {
  int left;
  int right;
  int left_end;
};

/// The sides of a tile, which have `wide` columns each.
__device__ inline Sides sides_of(const run::GroupedProduct& call, const Tile& tile, int wide) {
  const auto out = static_cast<int>(call.out);
  if (call.epilogue.gated == nullptr) return {tile.column, tile.column + wide, out};
  return {tile.column / 2, (out + tile.column) / 2, out / 2};
}

/// The bias of eight columns on either side; zeros where there are none.
struct SideBiases {
  Eight left;
  Eight right;
};

template <typename T>
__device__ SideBiases biases_at(const Product<T, T>& product, const GroupEpilogue<T>& epilogue,
                                const Sides& at) {
  if (epilogue.bias == nullptr) return {};
  return {load_eight(epilogue.bias + at.left, at.left < at.left_end ? 8 : 0),
          load_eight(epilogue.bias + at.right, at.right < product.columns() ? 8 : 0)};
}

/// Ends eight columns of either side of a row, which are as the product by itself rounds them.
template <typename T>
__device__ void finish_eights(const Product<T, T>& product, const GroupEpilogue<T>& epilogue,
                              int row, const Sides& at, const SideBiases& biases, uint4 left,
                              uint4 right) {
  if (epilogue.bias != nullptr) {
    const float scale = factor_of(epilogue.scales, row);
    const auto with_bias = [scale](const uint4& of, const Eight& bias) {
      Eight eight = unpacked<T>(of);
      add_bias(eight, bias, scale);
      return packed<T>(eight);
    };
    left = with_bias(left, biases.left);
    right = with_bias(right, biases.right);
  }
  const bool has_left = at.left < at.left_end;
  T* const y = product.c + std::int64_t{row} * product.columns();
  if (has_left) *reinterpret_cast<uint4*>(y + at.left) = left;
  if (at.right < product.columns()) *reinterpret_cast<uint4*>(y + at.right) = right;
  if (epilogue.gated == nullptr || !has_left) return;
  T* const gated = epilogue.gated + std::int64_t{row} * at.left_end + at.left;
  const float probability = factor_of(epilogue.probabilities, row);
  *reinterpret_cast<uint4*>(gated) =
      packed<T>(swiglu<T>(unpacked<T>(left), unpacked<T>(right), probability));
}

/// For a whole warp: ends 16 rows, and kWarpSide columns on either side. Biases are asked for
/// before anything is written, since a load waits behind a store that it may depend on.
template <typename T>
__device__ void finish_band(const Product<T, T>& product, const GroupEpilogue<T>& epilogue,
                            int first_row, const Sides& sides,
                            const float (&left)[kWarpSide / 8][4],
                            const float (&right)[kWarpSide / 8][4]) {
  using Strip = results::Strip<T>;
  constexpr int kLanes = Strip::kLanes;
  constexpr int kStrips = kWarpSide / 8 / kLanes;
  const auto sides_of_strip = [&](int strip) {
    const int across = Strip::column() + strip * kLanes * 8;
    return Sides{sides.left + across, sides.right + across, sides.left_end};
  };
  SideBiases biases[kStrips];
#pragma unroll
  for (int strip = 0; strip < kStrips; ++strip) {
    biases[strip] = biases_at(product, epilogue, sides_of_strip(strip));
  }
#pragma unroll
  for (int part = 0; part < 2 * kStrips; ++part) {
    const int half = part % 2;
    const int strip = part / 2;
    const auto packed_strip = [&](const float(&sums)[kWarpSide / 8][4]) {
      float2 pairs[kLanes];
#pragma unroll
      for (int p = 0; p < kLanes; ++p) {
        const float* const sum = sums[strip * kLanes + p] + half * 2;
        pairs[p] = make_float2(sum[0], sum[1]);
      }
      return Strip::packed(pairs);
    };
    const uint4 of_left = packed_strip(left);
    const uint4 of_right = packed_strip(right);
    const int row = first_row + static_cast<int>(threadIdx.x % 32 / 4) + half * 8;
    if (row >= product.rows()) continue;
    finish_eights(product, epilogue, row, sides_of_strip(strip), biases[strip], of_left, of_right);
  }
}

/// SwiGLU's rows of a group, and where their gradients go.
template <typename T>
struct GroupGates {
  const T* gates;
  T* dgates;
  const float* probabilities;
  bool leaves_sums;
};

template <typename T>
__device__ GroupGates<T> gates_of(const run::GroupedProduct& call, const RowGroups& groups,
                                  int group) {
  const run::Epilogue& of = call.epilogue;
  const std::int64_t first = groups.first_row[group];
  const std::int64_t skipped = first * 2 * call.in;
  return {static_cast<const T*>(of.gates) + skipped, static_cast<T*>(of.dgates) + skipped,
          of.probabilities == nullptr ? nullptr : of.probabilities + first, of.leaves_sums};
}

/// Eight gates and the linear parts that belong to them.
struct EightGates {
  uint4 gate;
  uint4 linear;
};

template <typename T>
__device__ EightGates gates_at(const Product<T, T>& product, const GroupGates<T>& of, int row,
                               int column) {
  if (row >= product.rows() || column >= product.columns()) return {};
  const T* const gate = of.gates + std::int64_t{row} * 2 * product.columns() + column;
  return {*reinterpret_cast<const uint4*>(gate),
          *reinterpret_cast<const uint4*>(gate + product.columns())};
}

/// Writes the gradients of eight, of which the product has `incoming`. Returns the sum of their
/// terms in the gradient of the row's probability.
template <typename T>
__device__ float finish_gates(const Product<T, T>& product, const GroupGates<T>& of, int row,
                              int column, float probability, const EightGates& gates,
                              const uint4& incoming) {
  if (row >= product.rows() || column >= product.columns()) return 0;
  Eight gate = unpacked<T>(gates.gate);
  Eight linear = unpacked<T>(gates.linear);
  const float sum = swiglu_gradient<T>(gate, linear, unpacked<T>(incoming), probability);
  T* const dgate = of.dgates + std::int64_t{row} * 2 * product.columns() + column;
  __stcg(reinterpret_cast<uint4*>(dgate), packed<T>(gate));
  __stcg(reinterpret_cast<uint4*>(dgate + product.columns()), packed<T>(linear));
  return sum;
}

/// Leaves the sum of a row's columns in a tile where the tile's first columns of the result lie.
template <typename T>
__device__ void leave_sum(const Product<T, T>& product, int row, int column, float sum) {
  T* const at = product.c + std::int64_t{row} * product.columns() + column;
  *reinterpret_cast<float*>(at) = sum;
}

/// A warp's 16 rows of a tile of kSummedColumns, on the way to SwiGLU's gradients.
template <typename T>
class GateRows {
 public:
  static constexpr int kBands = static_cast<int>(run::kSummedColumns) / kWarpSide;

  /// Asks for the first band's gates.
  __device__ GateRows(const Product<T, T>& product, const GroupGates<T>& of, int first_row,
                      int first_column)
      : product_(product),
        of_(of),
        row_(first_row + static_cast<int>(threadIdx.x % 32 / 4)),
        column_(first_column + Strip::column()) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      probabilities_[half] =
          row_of(half) < product.rows() ? factor_of(of.probabilities, row_of(half)) : 0.0F;
    }
#pragma unroll
    for (int part = 0; part < kParts; ++part) load(0, part);
  }

  __device__ void finish(const float (&sums)[kBands][kWarpSide / 8][4]) {
#pragma unroll
    for (int band = 0; band < kBands; ++band) {
#pragma unroll
      for (int part = 0; part < kParts; ++part) finish(band, part, sums[band]);
    }
    if (of_.leaves_sums) leave_sums();
  }

 private:
  using Strip = results::Strip<T>;
  static constexpr int kLanes = Strip::kLanes;
  static constexpr int kStrips = kWarpSide / 8 / kLanes;
  static constexpr int kParts = 2 * kStrips;  // of a band: eights of this lane, by strip and row
  static_assert(kBands == 4 && kStrips == 2 && kLanes == 4, "32 eights make a row");

  [[nodiscard]] __device__ int row_of(int part) const {
    return row_ + part % 2 * 8;
  }
  [[nodiscard]] __device__ int column_of(int band, int part) const {
    return column_ + band * kWarpSide + part / 2 * kLanes * 8;
  }
  __device__ void load(int band, int part) {
    gates_[part] = gates_at(product_, of_, row_of(part), column_of(band, part));
  }
  __device__ void finish(int band, int part, const float (&sums)[kWarpSide / 8][4]) {
    float2 pairs[kLanes];
#pragma unroll
    for (int p = 0; p < kLanes; ++p) {
      const float* const sum = sums[part / 2 * kLanes + p] + part % 2 * 2;
      pairs[p] = make_float2(sum[0], sum[1]);
    }
    const uint4 incoming = Strip::packed(pairs);
    const EightGates gates = gates_[part];
    if (band + 1 < kBands) load(band + 1, part);
    const float sum = finish_gates(product_, of_, row_of(part), column_of(band, part),
                                   probabilities_[part % 2], gates, incoming);
    float& of_pair = terms_[part][band % 2];
    of_pair = band < 2 ? sum : of_pair + sum;
  }
  // Goes on with the butterfly of find_gradient, whose lane is 8 * band + 4 * strip + this lane's
  // number in its four.
  __device__ void leave_sums() const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const auto& of = terms_;
      float sum = (of[half][0] + of[half][1]) + (of[half + 2][0] + of[half + 2][1]);
      sum += __shfl_xor_sync(0xffffffffU, sum, 2);
      sum += __shfl_xor_sync(0xffffffffU, sum, 1);
      const bool writes = threadIdx.x % 4 == 0 && row_of(half) < product_.rows();
      if (writes) leave_sum(product_, row_of(half), column_, sum);
    }
  }

  const Product<T, T>& product_;
  const GroupGates<T>& of_;
  int row_;     ///< the first of this lane's two, the other is eight further
  int column_;  ///< the first of this lane's
  float probabilities_[2];
  EightGates gates_[kParts];  ///< of what is next of each part
  float terms_[kParts][2];    ///< of even and of odd bands
};

/// For a whole warp: its kWarpSide x kWarpSide elements of C from a row and a column on.
template <run::Write kWrite, typename T, typename C>
__device__ void write_results(const Product<T, C>& product, int first_row, int first_column,
                              const Sums& sums) {
#pragma unroll
  for (int i = 0; i < kWarpSide / 16; ++i) {
    write_band<kWrite>(product, first_row + i * 16, first_column, sums[i]);
  }
}

}  // namespace capo::gpu
