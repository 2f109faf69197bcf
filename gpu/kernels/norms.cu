// Layer norm. A block takes a row at a time and goes over it once for each thing it has to know:
// mean, variance around the mean, then what depends on both. From the second time on the row comes
// from the cache. Two passes, so that a large mean takes no digits from the variance.
//
// The gradients of weight and bias are sums over rows in blocks of columns. Nothing is kept from
// the forward and a launch has no memory of its own, so every block finds the moments of all rows:
// right, and for many columns the same reading many times. Shared memory: column_sums.cuh's, and a
// float for each warp. Tested by tests/gpu/norms_test.cpp.

#include "gpu/kernels/column_sums.cuh"
#include "gpu/kernels/elements.cuh"
#include "gpu/kernels/families.h"
#include "gpu/kernels/teams.cuh"

namespace capo::gpu {

namespace {

struct Moments {
  float mean;
  float inverse;  // 1 / sqrt(variance + epsilon)
};

template <typename Team, typename T>
__device__ Moments moments_of(const Team& team, const T* row, std::int64_t columns, float epsilon) {
  const auto count = static_cast<float>(columns);
  float sum = 0;
  by_eights(team, columns, [&](std::int64_t column, std::int64_t left) {
    const Eight x = load_eight(row + column, left);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += x.at[i];
  });
  const float mean = team.sum(sum) / count;
  float squares = 0;
  by_eights(team, columns, [&](std::int64_t column, std::int64_t left) {
    const Eight x = load_eight(row + column, left);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (i < left) squares += (x.at[i] - mean) * (x.at[i] - mean);
    }
  });
  return {mean, 1.0F / sqrtf(team.sum(squares) / count + epsilon)};
}

template <typename T>
__global__ void normalise(run::LayerNorm call) {
  const Block block;
  const auto* weights = static_cast<const T*>(call.weight);
  const auto* biases = static_cast<const T*>(call.bias);
  for (std::int64_t row = blockIdx.x; row < call.rows; row += gridDim.x) {
    const T* x = static_cast<const T*>(call.x) + row * call.columns;
    T* y = static_cast<T*>(call.y) + row * call.columns;
    const Moments moments = moments_of(block, x, call.columns, call.epsilon);
    by_eights(block, call.columns, [&](std::int64_t column, std::int64_t left) {
      Eight value = load_eight(x + column, left);
      const Eight weight = load_eight(weights + column, left);
      const Eight bias = load_eight(biases + column, left);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const float normal = (value.at[i] - moments.mean) * moments.inverse;
        value.at[i] = normal * weight.at[i] + bias.at[i];
      }
      store_eight(y + column, value, left);
    });
  }
}

// With n the normalised row and g = dy * weight: dx = inverse * (g - mean(g) - n * mean(g * n)).
// Each thread writes only where it has read last, so dx may be dy.
template <typename T>
__global__ void find_gradient(run::LayerNormGradient call) {
  const Block block;
  const auto count = static_cast<float>(call.columns);
  const auto* weights = static_cast<const T*>(call.weight);
  for (std::int64_t row = blockIdx.x; row < call.rows; row += gridDim.x) {
    const T* x = static_cast<const T*>(call.x) + row * call.columns;
    const T* dy = static_cast<const T*>(call.dy) + row * call.columns;
    T* dx = static_cast<T*>(call.dx) + row * call.columns;
    const Moments moments = moments_of(block, x, call.columns, call.epsilon);
    const auto visit_normals = [&](auto visit) {
      by_eights(block, call.columns, [&](std::int64_t column, std::int64_t left) {
        Eight normal = load_eight(x + column, left);
        Eight g = load_eight(dy + column, left);
        const Eight weight = load_eight(weights + column, left);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          normal.at[i] = (normal.at[i] - moments.mean) * moments.inverse;
          g.at[i] *= weight.at[i];
        }
        visit(column, left, normal, g);
      });
    };
    float sum = 0;
    float sum_along = 0;
    visit_normals([&](std::int64_t, std::int64_t, const Eight& normal, const Eight& g) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {  // g is zero beyond the row
        sum += g.at[i];
        sum_along += g.at[i] * normal.at[i];
      }
    });
    const float mean = block.sum(sum) / count;
    const float along = block.sum(sum_along) / count;
    visit_normals([&](std::int64_t column, std::int64_t left, const Eight& normal, const Eight& g) {
      Eight gradient;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        gradient.at[i] = moments.inverse * (g.at[i] - mean - normal.at[i] * along);
      }
      store_eight(dx + column, gradient, left);
    });
  }
}

template <typename T, typename G>
__global__ void __launch_bounds__(kSummingWarps * 32, 1)
    sum_weight_gradients(run::LayerNormWeightGradient call) {
  if (call.rows == 0 && call.write == run::Write::Add) return;
  const auto term_of_row = [&](std::int64_t row) {
    const T* x = static_cast<const T*>(call.x) + row * call.columns;
    const T* dy = static_cast<const T*>(call.dy) + row * call.columns;
    const Moments moments = moments_of(Warp(), x, call.columns, call.epsilon);
    return [x, dy, moments](std::int64_t column) {
      const float incoming = to_float(dy[column]);
      const float normal = (to_float(x[column]) - moments.mean) * moments.inverse;
      return Terms<2>{incoming * normal, incoming};
    };
  };
  for (std::int64_t slab = blockIdx.x; slab < slabs_of(call.columns); slab += gridDim.x) {
    sum_columns<2>(0, call.rows, slab * kColumns, call.columns, term_of_row,
                   [&](std::int64_t column, const Terms<2>& sums) {
                     put(static_cast<G*>(call.dweight)[column], sums.at[0], call.write);
                     put(static_cast<G*>(call.dbias)[column], sums.at[1], call.write);
                   });
  }
}

const Kernel<run::LayerNorm> kNorms[] = {normalise<Bf16>, normalise<Fp16>, normalise<float>};
const Kernel<run::LayerNormGradient> kGradients[] = {find_gradient<Bf16>, find_gradient<Fp16>,
                                                     find_gradient<float>};
const Kernel<run::LayerNormWeightGradient> kWeightGradients[] = {
    sum_weight_gradients<Bf16, Bf16>,  sum_weight_gradients<Bf16, Fp16>,
    sum_weight_gradients<Bf16, float>, sum_weight_gradients<Fp16, Bf16>,
    sum_weight_gradients<Fp16, Fp16>,  sum_weight_gradients<Fp16, float>,
    sum_weight_gradients<float, Bf16>, sum_weight_gradients<float, Fp16>,
    sum_weight_gradients<float, float>};

}  // namespace

Launch<run::LayerNorm> launch_of(const run::LayerNorm& call) {
  return {.kernel = of_type(kNorms, call.type),
          .blocks = blocks_for(call.rows),
          .threads = threads_for(call.columns)};
}

Launch<run::LayerNormGradient> launch_of(const run::LayerNormGradient& call) {
  return {.kernel = of_type(kGradients, call.type),
          .blocks = blocks_for(call.rows),
          .threads = threads_for(call.columns)};
}

Launch<run::LayerNormWeightGradient> launch_of(const run::LayerNormWeightGradient& call) {
  return {.kernel = of_types(kWeightGradients, call.type, call.gradient_type),
          .blocks = blocks_for(slabs_of(call.columns)),
          .threads = kSummingWarps * 32};
}

Kernels<run::LayerNorm> kernels_of(std::type_identity<run::LayerNorm>) {
  return kNorms;
}
Kernels<run::LayerNormGradient> kernels_of(std::type_identity<run::LayerNormGradient>) {
  return kGradients;
}
Kernels<run::LayerNormWeightGradient> kernels_of(std::type_identity<run::LayerNormWeightGradient>) {
  return kWeightGradients;
}

}  // namespace capo::gpu
