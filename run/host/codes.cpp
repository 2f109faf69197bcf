// Rows and weights as codes: the largest magnitude of a block, its scale, and a code for each
// number. Rows that are made as they are quantized are made first, all of them.

#include "run/kernels/codes.h"
#include "core/base/index.h"
#include "run/host/parts.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

namespace capo::run::host {

namespace {

// Codes of some vectors along a depth, and where the scales of this matrix lie.
struct Vectors {
  std::uint8_t* codes = nullptr;
  std::int64_t step = 0;  ///< codes from a vector to the next
  std::byte* scales = nullptr;
  std::int64_t scale_step = 0;  ///< scales from a block of depth to the next
};

BlockScale put_scale(Scaling scaling, float largest, std::byte* at) {
  if (scaling == Scaling::Mxfp8) {
    const E8m0 exponent = exponent_of_block(largest);
    std::memcpy(at, &exponent.bits, sizeof exponent.bits);
    return scale_of(exponent);
  }
  const BlockScale scale = scale_of_block(largest);
  std::memcpy(at, &scale.down, sizeof scale.down);
  return scale;
}

// Quantizes `count` vectors of `depth` numbers; number(vector, k) is one of them. `width` vectors
// share a scale.
template <typename Number>
void quantize(Scaling scaling, const Vectors& to, std::int64_t count, std::int64_t depth,
              std::int64_t width, Number number) {
  const std::int64_t deep = block_depth(scaling);
  for (std::int64_t first = 0; first < count; first += width) {
    const std::int64_t end = std::min(first + width, count);
    for (std::int64_t k = 0; k < depth; k += deep) {
      const std::int64_t behind = std::min(k + deep, depth);
      float largest = 0;
      for (std::int64_t v = first; v < end; ++v) {
        for (std::int64_t i = k; i < behind; ++i) {
          const float magnitude = std::abs(number(v, i));
          largest = magnitude > largest ? magnitude : largest;  // false of a NaN
        }
      }
      const std::int64_t at = k / deep * to.scale_step + first / width;
      const BlockScale scale = put_scale(scaling, largest, to.scales + at * scale_bytes(scaling));
      for (std::int64_t v = first; v < end; ++v) {
        for (std::int64_t i = k; i < behind; ++i) {
          to.codes[v * to.step + i] = round_to<E4m3>(number(v, i) * scale.up).bits;
        }
      }
    }
  }
}

template <typename T>
void compute(const QuantizeRows& call) {
  const auto* x = static_cast<const T*>(call.x);
  const std::int64_t columns = call.columns;
  if (call.along_columns.codes != nullptr) {
    const Vectors to{.codes = call.along_columns.codes,
                     .step = columns,
                     .scales = static_cast<std::byte*>(call.along_columns.scales),
                     .scale_step = call.rows.count};
    quantize(call.scaling, to, in_use(call.rows), columns, 1,
             [&](std::int64_t row, std::int64_t i) { return to_float(x[row * columns + i]); });
  }
  if (call.along_rows.codes == nullptr) return;
  const std::int64_t all = depth_of(call.rows);
  std::int64_t from = 0;
  for_each_group(call.rows, [&](std::int64_t, std::int64_t first, std::int64_t end) {
    const std::int64_t padded = whole_blocks(end - first, kGroupDepth) * kGroupDepth;
    const std::int64_t blocks = from / block_depth(call.scaling);
    const Vectors to{.codes = call.along_rows.codes + from,
                     .step = all,
                     .scales = static_cast<std::byte*>(call.along_rows.scales) +
                               blocks * columns * scale_bytes(call.scaling),
                     .scale_step = columns};
    quantize(call.scaling, to, columns, padded, 1, [&](std::int64_t column, std::int64_t i) {
      return first + i < end ? to_float(x[(first + i) * columns + column]) : 0.0F;
    });
    from += padded;
  });
}

template <typename T>
void compute(const QuantizeWeights& call) {
  const std::int64_t wide = block_width(call.scaling);
  const auto one_way = [&](const Codes& to, std::int64_t count, std::int64_t depth,
                           std::int64_t count_step, std::int64_t depth_step) {
    if (to.codes == nullptr) return;
    const std::int64_t scales = bytes_of_scales(call.scaling, count, depth, wide);
    for (std::int64_t group = 0; group < call.groups; ++group) {
      const auto* w = static_cast<const T*>(call.w[group]);
      const Vectors vectors{.codes = to.codes + group * count * depth,
                            .step = depth,
                            .scales = static_cast<std::byte*>(to.scales) + group * scales,
                            .scale_step = whole_blocks(count, wide)};
      quantize(call.scaling, vectors, count, depth, wide, [&](std::int64_t v, std::int64_t k) {
        return to_float(w[v * count_step + k * depth_step]);
      });
    }
  };
  one_way(call.along_in, call.out, call.in, call.in, 1);
  one_way(call.along_out, call.in, call.out, 1, call.in);
}

}  // namespace

void compute(const QuantizeRows& call) {
  with_element(call.type, [&](auto element) {
    using T = decltype(element);
    const bool is_made = call.made.by != RowsMade::By::Nobody;
    std::vector<T> rows(is_made ? as_index(call.rows.count * call.columns) : 0);
    for_each_part(call, rows.data(), [&](const auto& part) {
      if constexpr (std::is_same_v<decltype(part), const QuantizeRows&>) {
        compute<T>(part);
      } else {
        compute(part);
      }
    });
  });
}

void compute(const QuantizeWeights& call) {
  with_element(call.type, [&](auto element) { compute<decltype(element)>(call); });
}

}  // namespace capo::run::host
