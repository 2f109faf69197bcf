// SwiGLU: silu(gate) * linear * probability by rows, and its gradients.

#include "run/host/parts.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

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

// The gradients of columns [first, end) of a row. Returns the sum of their terms in the gradient of
// its probability.
template <typename T>
float compute(const SwiGluGradient& call, std::int64_t row, std::int64_t first, std::int64_t end) {
  const T* gate = static_cast<const T*>(call.x) + row * 2 * call.columns;
  const T* linear = gate + call.columns;
  const T* dy = static_cast<const T*>(call.dy) + row * call.columns;
  T* const dx = call.dx == nullptr ? nullptr : static_cast<T*>(call.dx) + row * 2 * call.columns;
  const float probability = factor_of(call.probabilities, row);
  float sum = 0;
  for (std::int64_t i = first; i < end; ++i) {
    const float a = to_float(gate[i]);
    const float b = to_float(linear[i]);
    const float incoming = to_float(dy[i]);
    const float s = sigmoid(a);
    const float activated = a * s;
    const float slope = s * (1.0F + a * (1.0F - s));  // the derivative of silu
    sum += incoming * activated * b;
    if (dx == nullptr) continue;
    dx[i] = round_to<T>(incoming * probability * b * slope);
    dx[call.columns + i] = round_to<T>(incoming * probability * activated);
  }
  return sum;
}

// Calls visit(row, first column, sum) for each part of a row, in ascending order.
template <typename Visit>
void for_each_sum(const SwiGluGradient& call, Visit visit) {
  const std::int64_t rows = in_use(call.rows);
  with_element(call.type, [&](auto element) {
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t first = 0; first < call.columns; first += kSummedColumns) {
        const std::int64_t end = std::min(first + kSummedColumns, call.columns);
        visit(row, first, compute<decltype(element)>(call, row, first, end));
      }
    }
  });
}

// A sum in x (rows, columns) of 16 bits, where the first columns of its part lie.
std::int64_t byte_of(std::int64_t columns, std::int64_t row, std::int64_t first) {
  return (row * columns + first) * 2;
}

}  // namespace

void compute(const SwiGlu& call) {
  with_element(call.type, [&](auto element) { compute<decltype(element)>(call); });
}

void compute(const SwiGluGradient& call) {
  for_each_sum(call, [&](std::int64_t row, std::int64_t first, float sum) {
    if (call.dprobabilities == nullptr) return;
    call.dprobabilities[row] = first == 0 ? sum : call.dprobabilities[row] + sum;
  });
}

void compute_leaving_sums(const SwiGluGradient& call, void* dy) {
  for_each_sum(call, [&](std::int64_t row, std::int64_t first, float sum) {
    std::memcpy(static_cast<std::byte*>(dy) + byte_of(call.columns, row, first), &sum, sizeof sum);
  });
}

void compute(const ProbabilityGradient& call) {
  const auto* x = static_cast<const std::byte*>(call.x);
  const std::int64_t rows = in_use(call.rows);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t first = 0; first < call.columns; first += kSummedColumns) {
      float sum = 0;
      std::memcpy(&sum, x + byte_of(call.columns, row, first), sizeof sum);
      call.dprobabilities[row] = first == 0 ? sum : call.dprobabilities[row] + sum;
    }
  }
}

}  // namespace capo::run::host
