// Rows and weights become codes of eight bits, for products that sum along either side: what is
// read once is written both ways.
//
// A block takes tiles of 128 x 128 numbers in turn (strips.cuh), which lie in memory or are made of
// what lies there. Sixteen threads have the blocks of a row: they find its scale, and write its
// codes at once. Then all numbers are put into shared memory, from where each thread takes two
// columns of 32 rows, while the numbers of the next tile are on their way. Their codes go once more
// through shared memory, since a column's lie far from the next one's. Tiles of rows begin with a
// group's first row, so that no block along the rows is of two groups; what is beyond the group
// counts as zero.
//
//   tile    128 x 128 numbers
//   codes   128 x (128 + 16) bytes, by columns
//
// No result depends on which block took a tile. Tested by codes_test.cpp.

#include "gpu/kernels/codes.cuh"
#include "gpu/kernels/elements.cuh"
#include "gpu/kernels/families.h"
#include "gpu/kernels/limits.h"
#include "gpu/kernels/row_groups.cuh"
#include "gpu/kernels/strips.cuh"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace capo::gpu {

namespace {

using run::QuantizeRows;
using run::QuantizeWeights;
using run::RowsMade;
using run::Scaling;

constexpr int kCodeStep = kTileSide + 16;
static_assert(kTileSide == run::kGroupDepth);

constexpr int kCodeBytes = kTileSide * kCodeStep;
template <typename T>
constexpr int kTileBytes = kTileSide* kTileSide* static_cast<int>(sizeof(T));
template <typename T>
constexpr int shared_bytes = kTileBytes<T> + kCodeBytes;
/// Blocks that a multiprocessor has registers and memory for.
template <typename T>
constexpr int kBlocksAtOnce = sizeof(T) == 4 ? 2 : 3;

// The place of a tile's codes, of one way: its first code, and its first scale.
struct Destination {
  std::uint8_t* codes;
  std::int64_t step;  // codes from a vector to the next
  int count;          // vectors that are there
  int depth;          // codes of each that are there
  void* scales;
  std::int64_t first_scale;
  std::int64_t scale_step;  // from a block of depth to the next
};

// NaN is left out.
__device__ float largest_of(const Eight& eight) {
  float largest = 0;
#pragma unroll
  for (const float number : eight.at) largest = fmaxf(largest, fabsf(number));
  return largest;
}
template <int kLanes>
__device__ float largest_of_lanes(float largest) {
#pragma unroll
  for (int distance = 1; distance < kLanes; distance *= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, distance));
  }
  return largest;
}

// The largest magnitude in the tile; for a whole block.
template <typename T>
__device__ float largest_of_tile(const TileStrips<T>& strips) {
  __shared__ float of_warps[kTileThreads / 32];
  float largest = 0;
#pragma unroll
  for (const RowStrip<T>& row : strips.rows) largest = fmaxf(largest, largest_of(row.numbers()));
  largest = largest_of_lanes<32>(largest);
  __syncthreads();  // somebody may still be reading those of the tile before
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = largest;
  __syncthreads();
  for (const float one : of_warps) largest = fmaxf(largest, one);
  return largest;
}

// Writes codes that lie side by side, of which so many are there.
template <typename Word>
__device__ void store_codes(std::uint8_t* to, const Word& codes, int there) {
  constexpr int kCodes = static_cast<int>(sizeof(Word));
  if (there >= kCodes && reinterpret_cast<std::uintptr_t>(to) % sizeof(Word) == 0) {
    *reinterpret_cast<Word*>(to) = codes;
    return;
  }
  std::uint8_t bytes[kCodes];
  memcpy(bytes, &codes, sizeof bytes);
  for (int i = 0; i < kCodes && i < there; ++i) to[i] = bytes[i];
}

// Quantizes the rows of a tile. A scale that is given is that of the whole tile, and is written
// elsewhere.
template <Scaling kScaling, typename T>
__device__ void quantize_rows_of(const Destination& to, const TileStrips<T>& strips,
                                 const unsigned* of_tile) {
  constexpr int kDeep = static_cast<int>(run::block_depth(kScaling));
  const int column = column_of_thread();
#pragma unroll
  for (int i = 0; i < kStrips; ++i) {
    const int row = first_row_of_thread() + i * kRowsAtOnce;
    const Eight numbers = strips.rows[i].numbers();
    const unsigned down = of_tile != nullptr
                              ? *of_tile
                              : down_of<kScaling>(largest_of_lanes<kDeep / 8>(largest_of(numbers)));
    if (row >= to.count) continue;
    const float up = up_of(down);
    unsigned words[2];
#pragma unroll
    for (int word = 0; word < 2; ++word) {
      const float* const four = numbers.at + word * 4;
      words[word] =
          two_e4m3_of(four[0] * up, four[1] * up) | two_e4m3_of(four[2] * up, four[3] * up) << 16;
    }
    store_codes(to.codes + row * to.step + column, make_uint2(words[0], words[1]),
                to.depth - column);
    if (of_tile == nullptr && column % kDeep == 0 && column < to.depth) {
      put_scale<kScaling>(to.scales, to.first_scale + column / kDeep * to.scale_step + row, down);
    }
  }
}

// Puts the numbers into shared memory; for a whole block, which has read the columns of the tile
// before, but may still be writing their codes.
template <typename T>
__device__ void share(const TileStrips<T>& strips, T* tile) {
#pragma unroll
  for (int i = 0; i < kStrips; ++i) {
    const int row = first_row_of_thread() + i * kRowsAtOnce;
    *reinterpret_cast<RowStrip<T>*>(tile + row * kTileSide + column_of_thread()) = strips.rows[i];
  }
  __syncthreads();
}

// It is asked for anew each time: places that follow from it would fill registers between tiles.
__device__ int lane_of_thread() {
  int lane;
  asm volatile("mov.u32 %0, %%laneid;\n" : "=r"(lane));
  return lane;
}

// Quantizes the columns of a tile in shared memory, as quantize_rows_of() does rows; for a whole
// block. A thread has two columns of 32 rows: a block of Mxfp8, and a quarter of one of Block.
// Lanes take their rows in different orders when they write codes, so that each writes to a bank of
// its own.
template <Scaling kScaling, typename T>
__device__ void quantize_columns_of(const Destination& to, const T* tile, std::uint8_t* codes,
                                    const unsigned* of_tile) {
  constexpr int kRows = 32;
  constexpr int kQuarters = kTileSide / kRows;
  __shared__ float largest_of_quarters[kQuarters][kTileSide];
  const auto column = static_cast<int>(threadIdx.x) % (kTileSide / 2) * 2;
  const auto quarter = static_cast<int>(threadIdx.x) / (kTileSide / 2);
  // Two neighbours of a row; they are read twice, which takes fewer registers than to hold them.
  const auto both_at = [&](int row) {
    alignas(2 * sizeof(T)) T both[2];
    memcpy(both, tile + (quarter * kRows + row) * kTileSide + column, sizeof both);
    return make_float2(to_float(both[0]), to_float(both[1]));
  };
  float largest[2] = {0, 0};
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    const float2 both = both_at(row);
    largest[0] = fmaxf(largest[0], fabsf(both.x));
    largest[1] = fmaxf(largest[1], fabsf(both.y));
  }
  constexpr bool kSharesQuarters = kScaling == Scaling::Block;
  if (kSharesQuarters && of_tile == nullptr) {
    largest_of_quarters[quarter][column] = largest[0];
    largest_of_quarters[quarter][column + 1] = largest[1];
    __syncthreads();
#pragma unroll
    for (int other = 0; other < kQuarters; ++other) {
      largest[0] = fmaxf(largest[0], largest_of_quarters[other][column]);
      largest[1] = fmaxf(largest[1], largest_of_quarters[other][column + 1]);
    }
  }
  unsigned down[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    down[i] = of_tile != nullptr ? *of_tile : down_of<kScaling>(largest[i]);
    const bool writes = kSharesQuarters ? quarter == 0 : quarter * kRows < to.depth;
    if (of_tile != nullptr || !writes || column + i >= to.count) continue;
    const int block = kSharesQuarters ? 0 : quarter;
    put_scale<kScaling>(to.scales, to.first_scale + block * to.scale_step + column + i, down[i]);
  }
  const float first_up = up_of(down[0]);
  const float second_up = up_of(down[1]);
  const int turn = lane_of_thread() / 4;
#pragma unroll
  for (int quad = 0; quad < kRows / 4; ++quad) {
    const int row = (quad ^ turn) * 4;
    float2 four[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) four[i] = both_at(row + i);
    auto* const place =
        reinterpret_cast<unsigned*>(codes + column * kCodeStep + quarter * kRows + row);
    *place = two_e4m3_of(four[0].x * first_up, four[1].x * first_up) |
             two_e4m3_of(four[2].x * first_up, four[3].x * first_up) << 16;
    place[kCodeStep / 4] = two_e4m3_of(four[0].y * second_up, four[1].y * second_up) |
                           two_e4m3_of(four[2].y * second_up, four[3].y * second_up) << 16;
  }
  __syncthreads();
  for (auto at = static_cast<int>(threadIdx.x); at < kTileSide * kTileSide / 16;
       at += kTileThreads) {
    const int vector = at / (kTileSide / 16);
    const int k = at % (kTileSide / 16) * 16;
    if (vector >= to.count) continue;
    store_codes(to.codes + vector * to.step + k,
                *reinterpret_cast<const uint4*>(codes + vector * kCodeStep + k), to.depth - k);
  }
}

struct BlockGroups : RowGroups {
  int first_block[kMostGroups + 1];  // blocks of 128 rows before each group's
};

// A tile of rows, and the blocks of 128 rows of all groups before it.
struct TileOfRows : TilePlace {
  int block = 0;
};

template <RowsMade::By kBy, typename T>
__device__ auto source_of(const QuantizeRows& call) {
  const auto* const x = static_cast<const T*>(call.x);
  if constexpr (kBy == RowsMade::By::SwiGlu) {
    return GatedRows<T>{.x = x, .columns = call.columns, .probabilities = call.made.probabilities};
  } else if constexpr (kBy == RowsMade::By::SwiGluGradient) {
    return GatedGradientRows<T>{.x = x,
                                .dy = static_cast<const T*>(call.made.dy),
                                .half = static_cast<int>(call.columns / 2),
                                .probabilities = call.made.probabilities};
  } else if constexpr (kBy == RowsMade::By::Gather) {
    return GatheredRows<T>{.rows = {.x = x, .columns = call.columns}, .sources = call.made.sources};
  } else {
    return PlainRows<T>{.x = x, .columns = call.columns};
  }
}

// The tile of a row of tiles that comes so many after its first one. Both halves of a gradient are
// of the same numbers: their tiles follow one another, so that the second finds them in the cache.
template <RowsMade::By kBy>
__device__ int in_turn(int at, int across, int columns) {
  if (kBy != RowsMade::By::SwiGluGradient || columns % (2 * kTileSide) != 0) return at;
  return at % 2 * (across / 2) + at / 2;
}

template <Scaling kScaling, RowsMade::By kBy, typename T>
__global__ void __launch_bounds__(kTileThreads, kBlocksAtOnce<T>)
    quantize_rows(const QuantizeRows call) {
  extern __shared__ __align__(16) std::uint8_t memory[];
  __shared__ BlockGroups groups;
  auto* const shared = reinterpret_cast<T*>(memory);
  std::uint8_t* const codes = memory + shared_bytes<T> - kCodeBytes;
  const int count = groups_of(call.rows);
  if (threadIdx.x < 32) {
    write_sums(count, groups.first_row, [&](int group) { return size_of(call.rows, group); });
    write_sums(count, groups.first_block,
               [&](int group) { return (size_of(call.rows, group) + kTileSide - 1) / kTileSide; });
  }
  __syncthreads();
  constexpr int kDeep = static_cast<int>(run::block_depth(kScaling));
  const auto columns = static_cast<int>(call.columns);
  const std::int64_t depth = run::depth_of(call.rows);
  const int across = (columns + kTileSide - 1) / kTileSide;
  const int tiles = groups.first_block[count] * across;
  int group = 0;
  const auto tile_of = [&](int at) {
    TileOfRows tile;
    tile.block = at / across;
    while (tile.block >= groups.first_block[group + 1]) ++group;
    tile.row = groups.first_row[group] + (tile.block - groups.first_block[group]) * kTileSide;
    tile.column = in_turn<kBy>(at % across, across, columns) * kTileSide;
    tile.rows = min(kTileSide, groups.first_row[group + 1] - static_cast<int>(tile.row));
    tile.columns = min(kTileSide, columns - tile.column);
    return tile;
  };
  const auto source = source_of<kBy, T>(call);
  TileOfRows tile;
  TileStrips<T> strips;
  bool has_tile = false;
  for (auto at = static_cast<int>(blockIdx.x); has_tile || at < tiles;
       at += static_cast<int>(gridDim.x)) {
    if (has_tile && call.along_columns.codes != nullptr) {
      const Destination to{
          .codes = call.along_columns.codes + tile.row * call.columns + tile.column,
          .step = call.columns,
          .count = tile.rows,
          .depth = tile.columns,
          .scales = call.along_columns.scales,
          .first_scale = tile.column / kDeep * call.rows.count + tile.row,
          .scale_step = call.rows.count};
      quantize_rows_of<kScaling>(to, strips, nullptr);
    }
    const bool has_columns = has_tile && call.along_rows.codes != nullptr;
    if (has_columns) share(strips, shared);
    const TileOfRows before = tile;
    has_tile = at < tiles;
    if (has_tile) {  // it is on its way while the columns of the one before are quantized
      tile = tile_of(at);
      strips = strips_of<T>(source, tile);
    }
    if (has_columns) {
      const std::int64_t from = std::int64_t{before.block} * kTileSide;
      const Destination to{.codes = call.along_rows.codes + before.column * depth + from,
                           .step = depth,
                           .count = before.columns,
                           .depth = kTileSide,
                           .scales = call.along_rows.scales,
                           .first_scale = from / kDeep * call.columns + before.column,
                           .scale_step = call.columns};
      quantize_columns_of<kScaling>(to, shared, codes, nullptr);
    }
  }
}

// The place of the codes of a tile of a group's weights, from a vector and a depth on.
template <Scaling kScaling>
__device__ Destination of_weights(const run::Codes& to, std::int64_t group, int count, int depth,
                                  int vector, int k) {
  constexpr int kDeep = static_cast<int>(run::block_depth(kScaling));
  constexpr int kWide = static_cast<int>(run::block_width(kScaling));
  const std::int64_t across = run::whole_blocks(count, kWide);
  const std::int64_t first = group * across * run::whole_blocks(depth, kDeep);
  return {.codes = to.codes + (group * count + vector) * depth + k,
          .step = depth,
          .count = min(kTileSide, count - vector),
          .depth = min(kTileSide, depth - k),
          .scales = to.scales,
          .first_scale = first + k / kDeep * across + vector / kWide,
          .scale_step = across};
}

template <Scaling kScaling, typename T>
__global__ void __launch_bounds__(kTileThreads, kBlocksAtOnce<T>)
    quantize_weights(const QuantizeWeights call) {
  extern __shared__ __align__(16) std::uint8_t memory[];
  auto* const tile = reinterpret_cast<T*>(memory);
  std::uint8_t* const codes = memory + shared_bytes<T> - kCodeBytes;
  const auto in = static_cast<int>(call.in);
  const auto out = static_cast<int>(call.out);
  const int across = (in + kTileSide - 1) / kTileSide;
  const std::int64_t in_group = std::int64_t{(out + kTileSide - 1) / kTileSide} * across;
  for (std::int64_t at = blockIdx.x; at < call.groups * in_group; at += gridDim.x) {
    const std::int64_t group = at / in_group;
    const auto row = static_cast<int>(at % in_group / across) * kTileSide;
    const auto column = static_cast<int>(at % across) * kTileSide;
    const PlainRows<T> w{.x = static_cast<const T*>(call.w[group]), .columns = call.in};
    const TileStrips<T> strips = strips_of<T>(w, TilePlace{.row = row,
                                                           .column = column,
                                                           .rows = min(kTileSide, out - row),
                                                           .columns = min(kTileSide, in - column)});
    constexpr bool kShares = kScaling == Scaling::Block;
    const unsigned down = kShares ? down_of<kScaling>(largest_of_tile(strips)) : 0;
    const unsigned* const of_tile = kShares ? &down : nullptr;
    const auto put_shared_scale = [&](const Destination& to) {
      if (kShares && threadIdx.x == 0) put_scale<kScaling>(to.scales, to.first_scale, down);
    };
    if (call.along_in.codes != nullptr) {
      const Destination to = of_weights<kScaling>(call.along_in, group, out, in, row, column);
      put_shared_scale(to);
      quantize_rows_of<kScaling>(to, strips, of_tile);
    }
    if (call.along_out.codes != nullptr) {
      const Destination to = of_weights<kScaling>(call.along_out, group, in, out, column, row);
      put_shared_scale(to);
      share(strips, tile);
      quantize_columns_of<kScaling>(to, tile, codes, of_tile);
    }
  }
}

// Indexed by who makes the rows, and then by the scaling.
using enum RowsMade::By;
const Kernel<QuantizeRows> kRows[][kTypes] = {
    {quantize_rows<Scaling::Block, Nobody, Bf16>, quantize_rows<Scaling::Block, Nobody, Fp16>,
     quantize_rows<Scaling::Block, Nobody, float>},
    {quantize_rows<Scaling::Mxfp8, Nobody, Bf16>, quantize_rows<Scaling::Mxfp8, Nobody, Fp16>,
     quantize_rows<Scaling::Mxfp8, Nobody, float>},
    {quantize_rows<Scaling::Block, SwiGlu, Bf16>, quantize_rows<Scaling::Block, SwiGlu, Fp16>,
     quantize_rows<Scaling::Block, SwiGlu, float>},
    {quantize_rows<Scaling::Mxfp8, SwiGlu, Bf16>, quantize_rows<Scaling::Mxfp8, SwiGlu, Fp16>,
     quantize_rows<Scaling::Mxfp8, SwiGlu, float>},
    {quantize_rows<Scaling::Block, SwiGluGradient, Bf16>,
     quantize_rows<Scaling::Block, SwiGluGradient, Fp16>,
     quantize_rows<Scaling::Block, SwiGluGradient, float>},
    {quantize_rows<Scaling::Mxfp8, SwiGluGradient, Bf16>,
     quantize_rows<Scaling::Mxfp8, SwiGluGradient, Fp16>,
     quantize_rows<Scaling::Mxfp8, SwiGluGradient, float>},
    {quantize_rows<Scaling::Block, Gather, Bf16>, quantize_rows<Scaling::Block, Gather, Fp16>,
     quantize_rows<Scaling::Block, Gather, float>},
    {quantize_rows<Scaling::Mxfp8, Gather, Bf16>, quantize_rows<Scaling::Mxfp8, Gather, Fp16>,
     quantize_rows<Scaling::Mxfp8, Gather, float>}};
const Kernel<QuantizeWeights> kWeights[][kTypes] = {
    {quantize_weights<Scaling::Block, Bf16>, quantize_weights<Scaling::Block, Fp16>,
     quantize_weights<Scaling::Block, float>},
    {quantize_weights<Scaling::Mxfp8, Bf16>, quantize_weights<Scaling::Mxfp8, Fp16>,
     quantize_weights<Scaling::Mxfp8, float>}};

// Blocks take turns, as many as there is room for.
template <typename C>
Launch<C> launch_tiles(const Kernel<C> (&kernels)[kTypes], const C& call, std::int64_t tiles) {
  const auto limits = device_limits();
  if (!limits) return {.asked = limits.error()};
  const int at_once = call.type == DataType::Fp32 ? kBlocksAtOnce<float> : kBlocksAtOnce<Bf16>;
  return {.kernel = of_type(kernels, call.type),
          .blocks = std::clamp<std::int64_t>(tiles, 1, at_once * limits->multiprocessors),
          .threads = kTileThreads,
          .shared_bytes = call.type == DataType::Fp32 ? shared_bytes<float> : shared_bytes<Bf16>};
}

}  // namespace

Launch<QuantizeRows> launch_of(const QuantizeRows& call) {
  const std::int64_t tiles =
      run::depth_of(call.rows) / kTileSide * run::whole_blocks(call.columns, kTileSide);
  const std::size_t made = static_cast<std::size_t>(call.made.by) * 2;
  return launch_tiles(kRows[made + static_cast<std::size_t>(call.scaling)], call, tiles);
}
Kernels<QuantizeRows> kernels_of(std::type_identity<QuantizeRows>) {
  return {kRows[0], std::size(kRows) * kTypes};
}

Launch<QuantizeWeights> launch_of(const QuantizeWeights& call) {
  const std::int64_t tiles =
      call.groups * run::whole_blocks(call.in, kTileSide) * run::whole_blocks(call.out, kTileSide);
  return launch_tiles(kWeights[static_cast<std::size_t>(call.scaling)], call, tiles);
}
Kernels<QuantizeWeights> kernels_of(std::type_identity<QuantizeWeights>) {
  return {kWeights[0], 2 * kTypes};
}

}  // namespace capo::gpu
