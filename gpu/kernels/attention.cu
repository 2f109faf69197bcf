// Causal attention of grouped queries, and its gradients, without a matrix of rows by rows.
//
// A block takes 16 tokens of a sequence and one head, keeps them in shared memory, and goes through
// the tokens that they read (or that read them) 32 at a time. A warp has two of the 16 and a lane
// one of the 32: the lane finds the score of its pair by itself, and the 32 weights then go round
// the warp while each lane adds up columns of the result of its own.
//
//   forward           16 queries, over keys and values up to the last of them; the greatest score
//                     so far is taken off, and what was added before is scaled when it grows
//   query gradient    16 queries, over the same keys and values
//   key gradients     16 keys and values of a kv head, over its heads and the queries behind
//
// Every result is added by one warp in ascending order of tokens, and of heads before them, so two
// runs agree to the bit and nothing is atomic. Products are plain fp32 arithmetic and no tensor
// core's. Rows of 32 tokens are padded by one number, so that lanes that read a column each use a
// bank of their own. At most kMostColumns columns a head. Tested by tests/gpu/attention_test.cpp.

#include "gpu/kernels/elements.cuh"
#include "gpu/kernels/families.h"

namespace capo::gpu {

namespace {

constexpr int kOwn = 16;     // tokens that a block keeps
constexpr int kOthers = 32;  // tokens that it looks at together, one a lane
constexpr int kWarps = 8;
constexpr int kOwnOfWarp = kOwn / kWarps;
constexpr int kMostColumns = 256;
constexpr int kMostOfLane = kMostColumns / 32;
constexpr unsigned kAll = 0xffffffffU;

__host__ __device__ std::int64_t length_of(const run::AttentionShape& shape) {
  return shape.sequence == 0 || shape.sequence > shape.rows ? shape.rows : shape.sequence;
}
__host__ __device__ std::int64_t tiles_of(const run::AttentionShape& shape) {
  return (length_of(shape) + kOwn - 1) / kOwn;
}
__host__ __device__ std::int64_t sequences_of(const run::AttentionShape& shape) {
  return shape.rows == 0 ? 0 : (shape.rows + length_of(shape) - 1) / length_of(shape);
}

// The work of a block at one time. It may have no rows, if the last sequence is shorter.
struct Piece {
  __device__ Piece(const run::AttentionShape& shape, std::int64_t heads, std::int64_t number) {
    const std::int64_t tiles = tiles_of(shape);
    head = number % heads;
    const std::int64_t tile = number / heads % tiles;
    sequence = number / heads / tiles * length_of(shape);
    end = min(sequence + length_of(shape), shape.rows);
    first = sequence + tile * kOwn;
  }
  std::int64_t head;
  std::int64_t sequence;  // its first row
  std::int64_t end;       // the row behind its last
  std::int64_t first;     // the first of the block's own rows
};

// A head's first column, and how many columns a row has.
struct Columns {
  std::int64_t row;
  std::int64_t first;
};
__device__ Columns queries(const run::AttentionShape& shape, std::int64_t head) {
  return {(shape.heads + 2 * shape.kv_heads) * shape.head_dim, head * shape.head_dim};
}
__device__ Columns keys(const run::AttentionShape& shape, std::int64_t kv_head) {
  return queries(shape, shape.heads + kv_head);
}
__device__ Columns values(const run::AttentionShape& shape, std::int64_t kv_head) {
  return queries(shape, shape.heads + shape.kv_heads + kv_head);
}
__device__ Columns results(const run::AttentionShape& shape, std::int64_t head) {
  return {shape.heads * shape.head_dim, head * shape.head_dim};
}

// Loads rows of a head as fp32, by all threads; zero from `end` on.
template <typename T>
__device__ void load(float* to, int stride, int count, const void* from, Columns columns, int dim,
                     std::int64_t first, std::int64_t end) {
  const T* begin = static_cast<const T*>(from) + columns.first;
  for (int at = static_cast<int>(threadIdx.x); at < count * dim; at += kWarps * 32) {
    const int row = at / dim;
    const int column = at % dim;
    const std::int64_t token = first + row;
    to[row * stride + column] = token < end ? to_float(begin[token * columns.row + column]) : 0.0F;
  }
}

__device__ float inner_product(const float* a, const float* b, int dim) {
  float sum = 0;
  for (int i = 0; i < dim; ++i) sum += a[i] * b[i];
  return sum;
}

__device__ float greatest_of_warp(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAll, value, distance));
  }
  return value;
}

// Those of the 32 other tokens that one of the block's own reads, or that read it.
struct Span {
  int first;
  int end;
};
__device__ Span read_by(std::int64_t token, std::int64_t others) {
  return {0, static_cast<int>(min(token + 1 - others, std::int64_t{kOthers}))};
}
__device__ Span reading(std::int64_t token, std::int64_t others, std::int64_t end) {
  return {static_cast<int>(min(max(token - others, std::int64_t{0}), std::int64_t{kOthers})),
          static_cast<int>(min(end - others, std::int64_t{kOthers}))};
}

// The columns of one row that a lane adds up: lane, lane + 32, ...
struct Sums {
  float at[kMostOfLane] = {};

  __device__ void scale(float factor) {
#pragma unroll
    for (int i = 0; i < kMostOfLane; ++i) at[i] *= factor;
  }
  // The weight of each lane's token times that token's row, in ascending order; tokens that are no
  // part of the sum are left out, since their numbers may be infinite.
  __device__ void add(float weight, const Span& part, const float* rows, int stride, int dim) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    for (int other = part.first; other < part.end; ++other) {
      const float factor = __shfl_sync(kAll, weight, other);
#pragma unroll
      for (int i = 0; i < kMostOfLane; ++i) {
        const int column = lane + i * 32;
        if (column < dim) at[i] += factor * rows[other * stride + column];
      }
    }
  }
  template <typename T>
  __device__ void write(void* to, Columns columns, std::int64_t token, int dim,
                        float factor) const {
    const int lane = static_cast<int>(threadIdx.x % 32);
    T* row = static_cast<T*>(to) + token * columns.row + columns.first;
#pragma unroll
    for (int i = 0; i < kMostOfLane; ++i) {
      const int column = lane + i * 32;
      if (column < dim) row[column] = round_to<T>(at[i] * factor);
    }
  }
};

__device__ float scale_of(const run::AttentionShape& shape) {
  return 1.0F / sqrtf(static_cast<float>(shape.head_dim));
}

extern __shared__ float shared_rows[];

// Shared memory: two matrices of own rows and two of others.
struct Shared {
  __device__ explicit Shared(int dim)
      : stride(dim + 1),
        own(shared_rows),
        own_second(own + kOwn * stride),
        others(own_second + kOwn * stride),
        others_second(others + kOthers * stride) {}
  int stride;
  float* own;
  float* own_second;
  float* others;
  float* others_second;
};

template <typename T>
__global__ void attend(run::Attention call) {
  const run::AttentionShape shape = call.shape;
  const int dim = static_cast<int>(shape.head_dim);
  const Shared shared(dim);
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const std::int64_t pieces = sequences_of(shape) * tiles_of(shape) * shape.heads;
  for (std::int64_t number = blockIdx.x; number < pieces; number += gridDim.x) {
    const Piece piece(shape, shape.heads, number);
    if (piece.first >= piece.end) continue;
    const std::int64_t kv_head = piece.head / (shape.heads / shape.kv_heads);
    __syncthreads();  // somebody may still be reading the piece before
    load<T>(shared.own, shared.stride, kOwn, call.qkv, queries(shape, piece.head), dim, piece.first,
            piece.end);
    Sums sums[kOwnOfWarp];
    float greatest[kOwnOfWarp];
    float total[kOwnOfWarp] = {};
    for (float& one : greatest) one = -INFINITY;
    const std::int64_t behind = min(piece.first + kOwn, piece.end);
    for (std::int64_t others = piece.sequence; others < behind; others += kOthers) {
      __syncthreads();
      load<T>(shared.others, shared.stride, kOthers, call.qkv, keys(shape, kv_head), dim, others,
              piece.end);
      load<T>(shared.others_second, shared.stride, kOthers, call.qkv, values(shape, kv_head), dim,
              others, piece.end);
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kOwnOfWarp; ++i) {
        const int row = warp * kOwnOfWarp + i;
        const std::int64_t token = piece.first + row;
        if (token >= piece.end || others > token) continue;
        const Span part = read_by(token, others);
        const bool reads = lane < part.end;
        const float* query = shared.own + row * shared.stride;
        const float score =
            reads
                ? inner_product(query, shared.others + lane * shared.stride, dim) * scale_of(shape)
                : -INFINITY;
        const float now = fmaxf(greatest[i], greatest_of_warp(score));
        const float before = expf(greatest[i] - now);  // nothing was added before the first
        const float weight = reads ? expf(score - now) : 0.0F;
        greatest[i] = now;
        sums[i].scale(before);
        sums[i].add(weight, part, shared.others_second, shared.stride, dim);
        total[i] *= before;
        for (int other = part.first; other < part.end; ++other) {
          total[i] += __shfl_sync(kAll, weight, other);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kOwnOfWarp; ++i) {
      const std::int64_t token = piece.first + warp * kOwnOfWarp + i;
      if (token >= piece.end) continue;
      sums[i].template write<T>(call.y, results(shape, piece.head), token, dim, 1.0F / total[i]);
      if (lane == 0) call.log_sums[token * shape.heads + piece.head] = greatest[i] + logf(total[i]);
    }
  }
}

template <typename T>
__global__ void find_query_gradient(run::AttentionQueryGradient call) {
  const run::AttentionShape shape = call.shape;
  const int dim = static_cast<int>(shape.head_dim);
  const Shared shared(dim);
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const std::int64_t pieces = sequences_of(shape) * tiles_of(shape) * shape.heads;
  for (std::int64_t number = blockIdx.x; number < pieces; number += gridDim.x) {
    const Piece piece(shape, shape.heads, number);
    if (piece.first >= piece.end) continue;
    const std::int64_t kv_head = piece.head / (shape.heads / shape.kv_heads);
    const Columns of_head = results(shape, piece.head);
    __syncthreads();  // somebody may still be reading the piece before
    load<T>(shared.own, shared.stride, kOwn, call.qkv, queries(shape, piece.head), dim, piece.first,
            piece.end);
    load<T>(shared.own_second, shared.stride, kOwn, call.dy, of_head, dim, piece.first, piece.end);
    load<T>(shared.others, shared.stride, kOwn, call.y, of_head, dim, piece.first, piece.end);
    __syncthreads();
    Sums sums[kOwnOfWarp];
    float inner[kOwnOfWarp];
#pragma unroll
    for (int i = 0; i < kOwnOfWarp; ++i) {
      const int at = (warp * kOwnOfWarp + i) * shared.stride;
      inner[i] = inner_product(shared.own_second + at, shared.others + at, dim);
    }
    const std::int64_t behind = min(piece.first + kOwn, piece.end);
    for (std::int64_t others = piece.sequence; others < behind; others += kOthers) {
      __syncthreads();
      load<T>(shared.others, shared.stride, kOthers, call.qkv, keys(shape, kv_head), dim, others,
              piece.end);
      load<T>(shared.others_second, shared.stride, kOthers, call.qkv, values(shape, kv_head), dim,
              others, piece.end);
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kOwnOfWarp; ++i) {
        const int row = warp * kOwnOfWarp + i;
        const std::int64_t token = piece.first + row;
        if (token >= piece.end || others > token) continue;
        const int own = row * shared.stride;
        const int other = lane * shared.stride;
        const Span part = read_by(token, others);
        float slope = 0;
        if (lane < part.end) {
          const float score =
              inner_product(shared.own + own, shared.others + other, dim) * scale_of(shape);
          const float incoming =
              inner_product(shared.own_second + own, shared.others_second + other, dim);
          slope =
              expf(score - call.log_sums[token * shape.heads + piece.head]) * (incoming - inner[i]);
        }
        sums[i].add(slope, part, shared.others, shared.stride, dim);
      }
    }
#pragma unroll
    for (int i = 0; i < kOwnOfWarp; ++i) {
      const std::int64_t token = piece.first + warp * kOwnOfWarp + i;
      if (token >= piece.end) continue;
      sums[i].template write<T>(call.dqkv, queries(shape, piece.head), token, dim, scale_of(shape));
      if (lane == 0) call.inner[token * shape.heads + piece.head] = inner[i];
    }
  }
}

template <typename T>
__global__ void find_key_gradients(run::AttentionKeyGradient call) {
  const run::AttentionShape shape = call.shape;
  const int dim = static_cast<int>(shape.head_dim);
  const Shared shared(dim);
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const std::int64_t sharing = shape.heads / shape.kv_heads;
  const std::int64_t pieces = sequences_of(shape) * tiles_of(shape) * shape.kv_heads;
  for (std::int64_t number = blockIdx.x; number < pieces; number += gridDim.x) {
    const Piece piece(shape, shape.kv_heads, number);
    if (piece.first >= piece.end) continue;
    __syncthreads();  // somebody may still be reading the piece before
    load<T>(shared.own, shared.stride, kOwn, call.qkv, keys(shape, piece.head), dim, piece.first,
            piece.end);
    load<T>(shared.own_second, shared.stride, kOwn, call.qkv, values(shape, piece.head), dim,
            piece.first, piece.end);
    Sums of_keys[kOwnOfWarp];
    Sums of_values[kOwnOfWarp];
    for (std::int64_t head = piece.head * sharing; head < (piece.head + 1) * sharing; ++head) {
      for (std::int64_t others = piece.first; others < piece.end; others += kOthers) {
        __syncthreads();
        load<T>(shared.others, shared.stride, kOthers, call.qkv, queries(shape, head), dim, others,
                piece.end);
        load<T>(shared.others_second, shared.stride, kOthers, call.dy, results(shape, head), dim,
                others, piece.end);
        __syncthreads();
        const std::int64_t reader = others + lane;
        const bool there = reader < piece.end;
        const float log_sum = there ? call.log_sums[reader * shape.heads + head] : 0.0F;
        const float inner = there ? call.inner[reader * shape.heads + head] : 0.0F;
#pragma unroll
        for (int i = 0; i < kOwnOfWarp; ++i) {
          const int row = warp * kOwnOfWarp + i;
          const std::int64_t token = piece.first + row;
          if (token >= piece.end) continue;
          const int own = row * shared.stride;
          const int other = lane * shared.stride;
          const Span part = reading(token, others, piece.end);
          float probability = 0;
          float slope = 0;
          if (lane >= part.first && lane < part.end) {
            const float score =
                inner_product(shared.others + other, shared.own + own, dim) * scale_of(shape);
            const float incoming =
                inner_product(shared.others_second + other, shared.own_second + own, dim);
            probability = expf(score - log_sum);
            slope = probability * (incoming - inner);
          }
          of_keys[i].add(slope, part, shared.others, shared.stride, dim);
          of_values[i].add(probability, part, shared.others_second, shared.stride, dim);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kOwnOfWarp; ++i) {
      const std::int64_t token = piece.first + warp * kOwnOfWarp + i;
      if (token >= piece.end) continue;
      of_keys[i].template write<T>(call.dqkv, keys(shape, piece.head), token, dim, scale_of(shape));
      of_values[i].template write<T>(call.dqkv, values(shape, piece.head), token, dim, 1.0F);
    }
  }
}

const Kernel<run::Attention> kAttentions[] = {attend<Bf16>, attend<Fp16>, attend<float>};
const Kernel<run::AttentionQueryGradient> kQueryGradients[] = {
    find_query_gradient<Bf16>, find_query_gradient<Fp16>, find_query_gradient<float>};
const Kernel<run::AttentionKeyGradient> kKeyGradients[] = {
    find_key_gradients<Bf16>, find_key_gradients<Fp16>, find_key_gradients<float>};

// Whether a call has heads as it must, and no more columns than the kernels have sums for.
bool is_served(const run::AttentionShape& shape) {
  return shape.rows >= 0 && shape.sequence >= 0 && shape.head_dim > 0 &&
         shape.head_dim <= kMostColumns && shape.kv_heads > 0 && shape.heads > 0 &&
         shape.heads % shape.kv_heads == 0;
}

template <typename C>
Launch<C> launch_over(const C& call, const Kernel<C> (&kernels)[kTypes], std::int64_t heads) {
  const run::AttentionShape& shape = call.shape;
  if (!is_served(shape)) return {};
  const auto rows = static_cast<int>(2 * (kOwn + kOthers) * (shape.head_dim + 1));
  return {.kernel = of_type(kernels, call.type),
          .blocks = blocks_for(sequences_of(shape) * tiles_of(shape) * heads),
          .threads = kWarps * 32,
          .shared_bytes = rows * static_cast<int>(sizeof(float))};
}

}  // namespace

Launch<run::Attention> launch_of(const run::Attention& call) {
  return launch_over(call, kAttentions, call.shape.heads);
}
Launch<run::AttentionQueryGradient> launch_of(const run::AttentionQueryGradient& call) {
  return launch_over(call, kQueryGradients, call.shape.heads);
}
Launch<run::AttentionKeyGradient> launch_of(const run::AttentionKeyGradient& call) {
  return launch_over(call, kKeyGradients, call.shape.kv_heads);
}

Kernels<run::Attention> kernels_of(std::type_identity<run::Attention>) {
  return kAttentions;
}
Kernels<run::AttentionQueryGradient> kernels_of(std::type_identity<run::AttentionQueryGradient>) {
  return kQueryGradients;
}
Kernels<run::AttentionKeyGradient> kernels_of(std::type_identity<run::AttentionKeyGradient>) {
  return kKeyGradients;
}

}  // namespace capo::gpu
