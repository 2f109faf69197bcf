// Parts of the host's kernels: a C++ type for each DataType, the rows that are in use and their
// groups, one place where a gradient is overwritten or added to, and the kernels themselves, by the
// files they lie in.
//
// It is private to run/host; others call execute() of host_engine.h. Tested by kernels_test.cpp,
// products_test.cpp, norms_test.cpp, activations_test.cpp, biases_test.cpp, attention_test.cpp and
// routes_test.cpp.

#pragma once

#include "core/base/assert.h"
#include "run/kernels/call.h"
#include "run/kernels/numbers.h"

#include <cstdint>

namespace capo::run::host {

// products.cpp
void compute(const GroupedProduct& call);
void compute(const ScaledProduct& call);

// codes.cpp
void compute(const QuantizeRows& call);
void compute(const QuantizeWeights& call);

// norms.cpp
void compute(const LayerNorm& call);
void compute(const LayerNormGradient& call);
void compute(const LayerNormWeightGradient& call);

// activations.cpp
void compute(const SwiGlu& call);
void compute(const SwiGluGradient& call);
void compute(const ProbabilityGradient& call);
/// Leaves in dy, which it has read, the sums that a ProbabilityGradient adds up.
void compute_leaving_sums(const SwiGluGradient& call, void* dy);

// attention.cpp
void compute(const Attention& call);
void compute(const AttentionQueryGradient& call);
void compute(const AttentionKeyGradient& call);

// routes.cpp
void compute(const Route& call);
void compute(const SortRoutes& call);
void compute(const Combine& call);
void compute(const RouteGradient& call);

// biases.cpp
void compute(const BiasAdd& call);
void compute(const BiasGradient& call);
void compute(const ScaleGradient& call);

// kernels.cpp
void compute(const Gather& call);

/// Calls visit with a zero of the type: `with_element(call.type, [&](auto zero) { ... });`
template <typename Visit>
void with_element(DataType type, Visit visit) {
  if (type == DataType::Bf16) return visit(Bf16{});
  if (type == DataType::Fp16) return visit(Fp16{});
  visit(float{});
}

[[nodiscard]] inline std::int64_t in_use(const Rows& rows) {
  if (rows.sizes == nullptr) return rows.count;
  std::int64_t sum = 0;
  for (std::int64_t group = 0; group < rows.groups; ++group) {
    CAPO_ASSERT(rows.sizes[group] >= 0, "no group has fewer rows than none");
    sum += rows.sizes[group];
  }
  CAPO_ASSERT(sum <= rows.count, "there is memory for the rows of all groups");
  return sum;
}

/// Calls visit(group, first row, row after the last) in ascending order, also for empty groups.
template <typename Visit>
void for_each_group(const Rows& rows, Visit visit) {
  const std::int64_t end = in_use(rows);
  if (rows.sizes == nullptr) return visit(std::int64_t{0}, std::int64_t{0}, end);
  std::int64_t first = 0;
  for (std::int64_t group = 0; group < rows.groups; ++group) {
    visit(group, first, first + rows.sizes[group]);
    first += rows.sizes[group];
  }
}

/// The scale or probability of a row; 1 if there are none.
[[nodiscard]] inline float factor_of(const float* factors, std::int64_t row) {
  return factors == nullptr ? 1.0F : factors[row];
}

/// The sum of term(0), term(1), ..., in that order.
template <typename Term>
[[nodiscard]] float sum_of(std::int64_t count, Term term) {
  float sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += term(i);
  return sum;
}

/// Writes one element of a gradient, rounded once.
template <typename T>
void put(T& gradient, float sum, Write write) {
  gradient = round_to<T>(write == Write::Add ? to_float(gradient) + sum : sum);
}

}  // namespace capo::run::host
