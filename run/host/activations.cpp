// SwiGLU: silu(gate) * linear * probability by rows, and its gradients.

#include "run/host/parts.h"

#include <cmath>

namespace capo::run::host {

namespace {

float sigmoid(float a) {
  return 1.0F / (1.0F + std::exp(-a));
}

template <typename T>
void compute(const SwiGlu& call) {
  const std::int64_t rows = in_use(call.rows);
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* gate = static_cast<const T*>(call.x) + row * 2 * call.columns;
    const T* linear = gate + call.columns;
    T* y = static_cast<T*>(call.y) + row * call.columns;
    const float probability = factor_of(call.probabilities, row);
    for (std::int64_t i = 0; i < call.columns; ++i) {
      const float a = to_float(gate[i]);
      y[i] = round_to<T>(a * sigmoid(a) * to_float(linear[i]) * probability);
    }
  }
}

template <typename T>
void compute(const SwiGluGradient& call) {
  const std::int64_t rows = in_use(call.rows);
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* gate = static_cast<const T*>(call.x) + row * 2 * call.columns;
    const T* linear = gate + call.columns;
    const T* dy = static_cast<const T*>(call.dy) + row * call.columns;
    T* const dx = call.dx == nullptr ? nullptr : static_cast<T*>(call.dx) + row * 2 * call.columns;
    const float probability = factor_of(call.probabilities, row);
    float dprobability = 0;
    for (std::int64_t i = 0; i < call.columns; ++i) {
      const float a = to_float(gate[i]);
      const float b = to_float(linear[i]);
      const float incoming = to_float(dy[i]);
      const float s = sigmoid(a);
      const float activated = a * s;
      const float slope = s * (1.0F + a * (1.0F - s));  // the derivative of silu
      dprobability += incoming * activated * b;
      if (dx == nullptr) continue;
      dx[i] = round_to<T>(incoming * probability * b * slope);
      dx[call.columns + i] = round_to<T>(incoming * probability * activated);
    }
    if (call.dprobabilities != nullptr) call.dprobabilities[row] = dprobability;
  }
}

}  // namespace

void compute(const SwiGlu& call) {
  with_element(call.type, [&](auto element) { compute<decltype(element)>(call); });
}

void compute(const SwiGluGradient& call) {
  with_element(call.type, [&](auto element) { compute<decltype(element)>(call); });
}

}  // namespace capo::run::host
