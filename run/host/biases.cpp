// A bias of each group of rows, scaled by rows, and the gradients of both.

#include "core/base/index.h"
#include "run/host/parts.h"

#include <cstddef>
#include <vector>

namespace capo::run::host {

namespace {

template <typename T>
void compute(const BiasAdd& call) {
  for_each_group(call.rows, [&](std::int64_t group, std::int64_t first, std::int64_t end) {
    for (std::int64_t row = first; row < end; ++row) {
      const auto* bias = static_cast<const T*>(call.bias[group]);
      T* y = static_cast<T*>(call.y) + row * call.columns;
      const float scale = factor_of(call.scales, row);
      for (std::int64_t i = 0; i < call.columns; ++i) {
        y[i] = round_to<T>(to_float(y[i]) + scale * to_float(bias[i]));
      }
    }
  });
}

template <typename T, typename G>
void compute(const BiasGradient& call) {
  std::vector<float> sums;
  for_each_group(call.rows, [&](std::int64_t group, std::int64_t first, std::int64_t end) {
    if (first == end && call.write == Write::Add) return;
    sums.assign(as_index(call.columns), 0.0F);
    for (std::int64_t row = first; row < end; ++row) {
      const T* dy = static_cast<const T*>(call.dy) + row * call.columns;
      const float scale = factor_of(call.scales, row);
      for (float& sum : sums) sum += scale * to_float(*dy++);
    }
    auto* dbias = static_cast<G*>(call.dbias[group]);
    for (const float sum : sums) put(*dbias++, sum, call.write);
  });
}

template <typename T>
void compute(const ScaleGradient& call) {
  for_each_group(call.rows, [&](std::int64_t group, std::int64_t first, std::int64_t end) {
    for (std::int64_t row = first; row < end; ++row) {
      const auto* bias = static_cast<const T*>(call.bias[group]);
      const T* dy = static_cast<const T*>(call.dy) + row * call.columns;
      call.dscales[row] =
          sum_of(call.columns, [&](std::int64_t i) { return to_float(dy[i]) * to_float(bias[i]); });
    }
  });
}

}  // namespace

void compute(const BiasAdd& call) {
  with_element(call.type, [&](auto element) { compute<decltype(element)>(call); });
}

void compute(const BiasGradient& call) {
  with_element(call.type, [&](auto element) {
    with_element(call.gradient_type,
                 [&](auto gradient) { compute<decltype(element), decltype(gradient)>(call); });
  });
}

void compute(const ScaleGradient& call) {
  with_element(call.type, [&](auto element) { compute<decltype(element)>(call); });
}

}  // namespace capo::run::host
