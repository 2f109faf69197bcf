// Layer norm. Its forward keeps no statistics: every kernel finds the mean and the variance of a
// row in the row itself, in two passes, so that a large mean takes no digits from the variance.

#include "core/base/index.h"
#include "run/host/parts.h"

#include <cmath>
#include <cstddef>
#include <vector>

namespace capo::run::host {

namespace {

struct Moments {
  float mean = 0;
  float inverse = 0;  // 1 / sqrt(variance + epsilon)
};

template <typename T>
Moments moments_of(const T* x, std::int64_t columns, float epsilon) {
  const auto count = static_cast<float>(columns);
  const float mean = sum_of(columns, [&](std::int64_t i) { return to_float(x[i]); }) / count;
  const float variance = sum_of(columns,
                                [&](std::int64_t i) {
                                  const float distance = to_float(x[i]) - mean;
                                  return distance * distance;
                                }) /
                         count;
  return {.mean = mean, .inverse = 1.0F / std::sqrt(variance + epsilon)};
}

template <typename T>
void compute(const LayerNorm& call) {
  const auto* weight = static_cast<const T*>(call.weight);
  const auto* bias = static_cast<const T*>(call.bias);
  for (std::int64_t row = 0; row < call.rows; ++row) {
    const T* x = static_cast<const T*>(call.x) + row * call.columns;
    T* y = static_cast<T*>(call.y) + row * call.columns;
    const Moments moments = moments_of(x, call.columns, call.epsilon);
    for (std::int64_t i = 0; i < call.columns; ++i) {
      const float normal = (to_float(x[i]) - moments.mean) * moments.inverse;
      y[i] = round_to<T>(normal * to_float(weight[i]) + to_float(bias[i]));
    }
  }
}

// With n the normalised row and g = dy * weight: dx = inverse * (g - mean(g) - n * mean(g * n)).
template <typename T>
void compute(const LayerNormGradient& call) {
  const auto count = static_cast<float>(call.columns);
  const auto* weight = static_cast<const T*>(call.weight);
  for (std::int64_t row = 0; row < call.rows; ++row) {
    const T* x = static_cast<const T*>(call.x) + row * call.columns;
    const T* dy = static_cast<const T*>(call.dy) + row * call.columns;
    T* dx = static_cast<T*>(call.dx) + row * call.columns;
    const Moments moments = moments_of(x, call.columns, call.epsilon);
    const auto normal = [&](std::int64_t i) {
      return (to_float(x[i]) - moments.mean) * moments.inverse;
    };
    const auto g = [&](std::int64_t i) { return to_float(dy[i]) * to_float(weight[i]); };
    const float mean = sum_of(call.columns, g) / count;
    const float along =
        sum_of(call.columns, [&](std::int64_t i) { return g(i) * normal(i); }) / count;
    for (std::int64_t i = 0; i < call.columns; ++i) {
      dx[i] = round_to<T>(moments.inverse * (g(i) - mean - normal(i) * along));
    }
  }
}

template <typename T, typename G>
void compute(const LayerNormWeightGradient& call) {
  if (call.rows == 0 && call.write == Write::Add) return;
  struct Sums {
    float weight = 0;
    float bias = 0;
  };
  std::vector<Sums> sums(as_index(call.columns));
  for (std::int64_t row = 0; row < call.rows; ++row) {
    const T* x = static_cast<const T*>(call.x) + row * call.columns;
    const T* dy = static_cast<const T*>(call.dy) + row * call.columns;
    const Moments moments = moments_of(x, call.columns, call.epsilon);
    for (Sums& sum : sums) {
      const float incoming = to_float(*dy++);
      sum.weight += incoming * ((to_float(*x++) - moments.mean) * moments.inverse);
      sum.bias += incoming;
    }
  }
  auto* dweight = static_cast<G*>(call.dweight);
  auto* dbias = static_cast<G*>(call.dbias);
  for (const Sums& sum : sums) {
    put(*dweight++, sum.weight, call.write);
    put(*dbias++, sum.bias, call.write);
  }
}

}  // namespace

void compute(const LayerNorm& call) {
  with_element(call.type, [&](auto element) { compute<decltype(element)>(call); });
}

void compute(const LayerNormGradient& call) {
  with_element(call.type, [&](auto element) { compute<decltype(element)>(call); });
}

void compute(const LayerNormWeightGradient& call) {
  with_element(call.type, [&](auto element) {
    with_element(call.gradient_type,
                 [&](auto gradient) { compute<decltype(element), decltype(gradient)>(call); });
  });
}

}  // namespace capo::run::host
