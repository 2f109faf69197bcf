// A bias of each group of rows, scaled by rows, and the gradients of both.
//
// A block takes a row at a time, or for the gradient of a bias a slab of columns of one group.
// Shared memory: row_groups.cuh's, for the gradients of biases column_sums.cuh's as well. Tested by
// tests/gpu/biases_test.cpp.

#include "gpu/kernels/column_sums.cuh"
#include "gpu/kernels/elements.cuh"
#include "gpu/kernels/families.h"
#include "gpu/kernels/row_groups.cuh"
#include "gpu/kernels/teams.cuh"

namespace capo::gpu {

namespace {

template <typename T>
__global__ void add_bias(run::BiasAdd call) {
  __shared__ RowGroups groups;
  find_groups(call.rows, groups);
  const Block block;
  const int count = groups_of(call.rows);
  for (int row = static_cast<int>(blockIdx.x); row < groups.first_row[count];
       row += static_cast<int>(gridDim.x)) {
    const auto* biases = static_cast<const T*>(call.bias[group_of(groups, count, row)]);
    T* y = static_cast<T*>(call.y) + row * call.columns;
    const float scale = factor_of(call.scales, row);
    by_eights(block, call.columns, [&](std::int64_t column, std::int64_t left) {
      Eight value = load_eight(y + column, left);
      add_bias(value, load_eight(biases + column, left), scale);
      store_eight(y + column, value, left);
    });
  }
}

template <typename T, typename G>
__global__ void __launch_bounds__(kSummingWarps * 32) sum_bias_gradients(run::BiasGradient call) {
  __shared__ RowGroups groups;
  find_groups(call.rows, groups);
  const auto term_of_row = [&](std::int64_t row) {
    const T* dy = static_cast<const T*>(call.dy) + row * call.columns;
    const float scale = factor_of(call.scales, row);
    return [dy, scale](std::int64_t column) { return Terms<1>{scale * to_float(dy[column])}; };
  };
  const std::int64_t slabs = slabs_of(call.columns);
  for (std::int64_t task = blockIdx.x; task < slabs * groups_of(call.rows); task += gridDim.x) {
    const auto group = static_cast<int>(task / slabs);
    const int first = groups.first_row[group];
    const int end = groups.first_row[group + 1];
    if (first == end && call.write == run::Write::Add) continue;
    auto* dbias = static_cast<G*>(call.dbias[group]);
    sum_columns<1>(first, end, task % slabs * kColumns, call.columns, term_of_row,
                   [&](std::int64_t column, const Terms<1>& sums) {
                     put(dbias[column], sums.at[0], call.write);
                   });
  }
}

template <typename T>
__global__ void find_scale_gradients(run::ScaleGradient call) {
  __shared__ RowGroups groups;
  find_groups(call.rows, groups);
  const Block block;
  const int count = groups_of(call.rows);
  for (int row = static_cast<int>(blockIdx.x); row < groups.first_row[count];
       row += static_cast<int>(gridDim.x)) {
    const auto* biases = static_cast<const T*>(call.bias[group_of(groups, count, row)]);
    const T* dy = static_cast<const T*>(call.dy) + row * call.columns;
    float sum = 0;
    by_eights(block, call.columns, [&](std::int64_t column, std::int64_t left) {
      const Eight incoming = load_eight(dy + column, left);
      const Eight bias = load_eight(biases + column, left);
#pragma unroll
      for (int i = 0; i < 8; ++i) sum += incoming.at[i] * bias.at[i];
    });
    sum = block.sum(sum);
    if (block.index == 0) call.dscales[row] = sum;
  }
}

const Kernel<run::BiasAdd> kAdds[] = {add_bias<Bf16>, add_bias<Fp16>, add_bias<float>};
const Kernel<run::BiasGradient> kBiasGradients[] = {
    sum_bias_gradients<Bf16, Bf16>,  sum_bias_gradients<Bf16, Fp16>,
    sum_bias_gradients<Bf16, float>, sum_bias_gradients<Fp16, Bf16>,
    sum_bias_gradients<Fp16, Fp16>,  sum_bias_gradients<Fp16, float>,
    sum_bias_gradients<float, Bf16>, sum_bias_gradients<float, Fp16>,
    sum_bias_gradients<float, float>};
const Kernel<run::ScaleGradient> kScaleGradients[] = {
    find_scale_gradients<Bf16>, find_scale_gradients<Fp16>, find_scale_gradients<float>};

}  // namespace

Launch<run::BiasAdd> launch_of(const run::BiasAdd& call) {
  return {.kernel = of_type(kAdds, call.type),
          .blocks = blocks_for(call.rows.count),
          .threads = threads_for(call.columns)};
}

Launch<run::BiasGradient> launch_of(const run::BiasGradient& call) {
  return {.kernel = of_types(kBiasGradients, call.type, call.gradient_type),
          .blocks = blocks_for(slabs_of(call.columns) * call.rows.groups),
          .threads = kSummingWarps * 32};
}

Launch<run::ScaleGradient> launch_of(const run::ScaleGradient& call) {
  return {.kernel = of_type(kScaleGradients, call.type),
          .blocks = blocks_for(call.rows.count),
          .threads = threads_for(call.columns)};
}

Kernels<run::BiasAdd> kernels_of(std::type_identity<run::BiasAdd>) {
  return kAdds;
}
Kernels<run::BiasGradient> kernels_of(std::type_identity<run::BiasGradient>) {
  return kBiasGradients;
}
Kernels<run::ScaleGradient> kernels_of(std::type_identity<run::ScaleGradient>) {
  return kScaleGradients;
}

}  // namespace capo::gpu
