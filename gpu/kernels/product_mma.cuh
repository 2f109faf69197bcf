// A product on tensor cores: bf16 or fp16 operands, sums in fp32.
//
// A block of 8 warps computes tiles of 128 x 256 elements, 64 x 64 a warp, and goes along the depth
// in slices of 64. While one slice is multiplied, the fragments of the next step are on their way
// to registers and two more slices are on their way to shared memory. The first slices of the next
// tile are asked for before the results of this one are written. Dynamic shared memory:
//
//   slot s of kSlots, 48 KB   A 128 x 64 | B 256 x 64    as SliceLayout lays them out
//
// and besides it GroupTiles (8.5 KB) and the slices of product_plain.cuh (8.5 KB), for groups whose
// weights do not lie at a multiple of 16 bytes: 161 KB in all, of the 163 KB that sm_80 has. in and
// out are multiples of 8, x and y aligned to 16 bytes.
//
// A slice is kCount x kDeep elements of 16 bits in pieces of 16 bytes, in rows as the operand is
// contiguous. Piece p of row r lies at p ^ (r % 8), so that eight rows at one piece, which is what
// ldmatrix reads, and one row at eight pieces, which is what a copy writes, use all banks once:
//
//   contiguous depth   kCount rows of kDeep elements, 8 pieces a row
//   contiguous count   kDeep rows of kCount elements, kCount / 8 pieces a row; read transposed
//
// Beyond the operand's ends there are zeros: zeros of both operands where the depth ends, so that a
// neighbour's infinity is not multiplied by zero.
//
// Each element adds in ascending order of depth, 16 at once, batch by batch. Blocks that find no
// work read and write nothing. Tested by tests/gpu/products_test.cpp.

#pragma once

#include "gpu/kernels/product_plain.cuh"
#include "gpu/kernels/product_results.cuh"
#include "gpu/kernels/product_tiles.cuh"
#include "gpu/kernels/tensor_core.cuh"

#include <cstdint>

namespace capo::gpu {

inline constexpr int kDeep = 64;
inline constexpr int kProductThreads = 256;
inline constexpr int kSteps = kDeep / 16;  ///< multiplications along a slice

enum class Contiguous : std::uint8_t { Depth, Count };

template <Contiguous kContiguous, int kCount>
struct SliceLayout {
  static constexpr int kBytes = kCount * kDeep * 2;
  static constexpr int kRowPieces = kContiguous == Contiguous::Depth ? kDeep / 8 : kCount / 8;
  static constexpr int kRowBytes = kRowPieces * 16;
  /// A block copies this many rows at once, so often.
  static constexpr int kRowsAtOnce = kProductThreads / kRowPieces;
  static constexpr int kCopies = kBytes / (kProductThreads * 16);
  static_assert(kRowsAtOnce % 8 == 0, "a thread's pieces lie in their rows all at one place");
};

/// A thread's share in copying an operand's slices, one after the other along the depth.
template <typename T, Contiguous kContiguous, int kCount>
class SliceCopies {
 public:
  using Layout = SliceLayout<kContiguous, kCount>;
  static constexpr int kCopies = Layout::kCopies;

  SliceCopies() = default;
  __device__ SliceCopies(const Operand<T>& operand, int first) {
    const int row = static_cast<int>(threadIdx.x) / Layout::kRowPieces;
    const int piece = static_cast<int>(threadIdx.x) % Layout::kRowPieces;
    if constexpr (kContiguous == Contiguous::Depth) {
      from_ = operand.data + (first + row) * operand.step + piece * 8;
      row_step_ = operand.step;
      rows_left_ = operand.count - first - row;
      depth_left_ = operand.depth - piece * 8;
    } else {
      from_ = operand.data + row * operand.depth_step + first + piece * 8;
      row_step_ = operand.depth_step;
      rows_left_ = first + piece * 8 < operand.count ? operand.depth - row : 0;
      depth_left_ = 1;
    }
  }

  /// The offset of this thread's first piece in any slice.
  [[nodiscard]] __device__ static std::uint32_t offset() {
    const unsigned row = threadIdx.x / Layout::kRowPieces;
    const unsigned piece = threadIdx.x % Layout::kRowPieces;
    return row * Layout::kRowBytes + (piece ^ row % 8) * 16;
  }

  /// Copy i of kCopies of the slice that the copies have come to; `to` is its thread's first piece.
  __device__ void copy(int i, std::uint32_t to) const {
    const bool is_there = i * Layout::kRowsAtOnce < rows_left_ && depth_left_ > 0;
    copy_later(to + static_cast<std::uint32_t>(i * Layout::kRowsAtOnce * Layout::kRowBytes),
               from_ + i * Layout::kRowsAtOnce * row_step_, is_there ? Fetch::Bytes : Fetch::Zeros);
  }

  __device__ void advance() {
    if constexpr (kContiguous == Contiguous::Depth) {
      from_ += kDeep;
      depth_left_ -= kDeep;
    } else {
      from_ += kDeep * row_step_;
      rows_left_ -= kDeep;
    }
  }

 private:
  const T* from_ = nullptr;
  std::int64_t row_step_ = 0;
  int rows_left_ = 0;   ///< in memory, from this thread's first on
  int depth_left_ = 0;  ///< from this thread's piece on, where a row has an end along the depth
};

/// Which of a 32-bit fragment's two operands: they number their four 8 x 8 matrices differently.
enum class Side : std::uint8_t { A, B };

/// The places from which a warp reads fragments: 16 of count by 16 of depth at a time.
template <Contiguous kContiguous, int kCount, Side kSide>
class Fragments {
 public:
  using Layout = SliceLayout<kContiguous, kCount>;

  /// From `first` of count on, a multiple of 64.
  __device__ explicit Fragments(int first) {
    const unsigned lane = threadIdx.x % 32;
    const unsigned matrix = lane / 8;
    // A: the second matrix is further along count, the third along the depth; B: the other way.
    const unsigned along_count = kSide == Side::A ? matrix % 2 : matrix / 2;
    const unsigned along_depth = kSide == Side::A ? matrix / 2 : matrix % 2;
    if constexpr (kContiguous == Contiguous::Depth) {
      row_ = (static_cast<unsigned>(first) + along_count * 8 + lane % 8) * Layout::kRowBytes;
      piece_ = (along_depth ^ lane % 8) * 16;
    } else {
      row_ = (along_depth * 8 + lane % 8) * Layout::kRowBytes + static_cast<unsigned>(first) * 2;
      piece_ = (along_count ^ lane % 8) * 16;
    }
  }

  /// Number i along count, at a step along the depth.
  __device__ void load(std::uint32_t (&to)[4], std::uint32_t slice, int i, int step) const {
    if constexpr (kContiguous == Contiguous::Depth) {
      const auto skipped = static_cast<std::uint32_t>(i * 16 * Layout::kRowBytes);
      const auto turned = piece_ ^ static_cast<std::uint32_t>(step * 32);
      load_matrices<Turn::Straight>(to, slice + row_ + turned + skipped);
    } else {
      const auto skipped = static_cast<std::uint32_t>(step * 16 * Layout::kRowBytes);
      const auto turned = piece_ ^ static_cast<std::uint32_t>(i * 32);
      load_matrices<Turn::Transposed>(to, slice + row_ + turned + skipped);
    }
  }

 private:
  std::uint32_t row_;    ///< this lane's row in the first fragment, in bytes from the slice
  std::uint32_t piece_;  ///< its piece there
};

inline constexpr int kTileHigh = 128;
inline constexpr int kTileWide = 256;
inline constexpr int kSlots = 3;
inline constexpr int kSlotBytes = (kTileHigh + kTileWide) * kDeep * 2;

template <typename T, typename C, ProductKind kKind>
class TileProduct {
 public:
  /// slots: kSlots * kSlotBytes of shared memory; `batches` are those of the call.
  __device__ TileProduct(const run::GroupedProduct& call, const Batch* batches,
                         const GroupTiles& tiles, const void* slots)
      : call_(call), batches_(batches), tiles_(tiles), slots_(shared_address(slots)) {}

  /// Turns to a tile and asks for its first slices.
  __device__ void start(const Tile& tile) {
    const Product<T, C> product = product_of<T, C>(call_, tiles_, tile.group);
    slices_ = lies_well(product) ? static_cast<int>(parts(product.depth(), kDeep)) : 0;
    slices_to_ask_for_ = slices_;
    a_copies_ = {product.a, tile.row};
    b_copies_ = {product.b, tile.column};
    if constexpr (kIsWeight) begin_further(tile, lies_well(product));
#pragma unroll
    for (int slot = 0; slot < kSlots - 1; ++slot) {
      copy_a(slot_address(slot));
      copy_b<0, BCopies::kCopies>(slot_address(slot));
      end_copies();
    }
  }

  /// The sums of the tile that was started.
  __device__ void multiply(const Tile& tile, Sums& sums) {
    if (slices_ == 0) return;
    const AFragments a_fragments(warp_row());
    const BFragments b_fragments(warp_column());
    std::uint32_t a[2][kWarpSide / 16][4];
    std::uint32_t b[2][kWarpSide / 16][4];
    const auto load = [&](int into, std::uint32_t slot, int step) {
#pragma unroll
      for (int i = 0; i < kWarpSide / 16; ++i) a_fragments.load(a[into][i], slot, i, step);
#pragma unroll
      for (int i = 0; i < kWarpSide / 16; ++i) {
        b_fragments.load(b[into][i], slot + ASlice::kBytes, i, step);
      }
    };
    std::uint32_t reading = slots_;
    std::uint32_t writing = slot_address(kSlots - 1);
    if (slices_ < kSlicesOfPrefetch) prefetch_results(tile);
    wait_for_slice();
    load(0, reading, 0);
    for (int left = slices_; left > 0; --left) {
      if (left == kSlicesOfPrefetch) prefetch_results(tile);
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        if (step == kSteps - 1) {
          // From here on nobody reads the slot that was read till now; it is written next. Behind
          // the last slice there is none, and what is loaded then is never multiplied.
          wait_for_slice();
          reading = next(reading);
        }
        load((step + 1) % 2, reading, (step + 1) % kSteps);
        if (step == 0) copy_a(writing);
        if (step == 1) copy_b<0, BCopies::kCopies / 2>(writing);
        if (step == 2) {
          copy_b<BCopies::kCopies / 2, BCopies::kCopies>(writing);
          end_copies();
          writing = next(writing);
        }
#pragma unroll
        for (int i = 0; i < kWarpSide / 16; ++i) {
#pragma unroll
          for (int j = 0; j < kWarpSide / 8; ++j) {
            const auto& pair = b[step % 2][j / 2];
            multiply_add<T>(sums[i][j], a[step % 2][i], pair[j % 2 * 2], pair[j % 2 * 2 + 1]);
          }
        }
      }
    }
  }

  /// Writes what multiply() summed up. The product is looked up again: registers are dear.
  __device__ void write(const Tile& tile, const Sums& sums) const {
    const Product<T, C> product = product_of<T, C>(call_, tiles_, tile.group);
    if (lies_well(product)) {
      const int row = tile.row + warp_row();
      const int column = tile.column + warp_column();
      if (call_.write == run::Write::Add) {
        return write_results<run::Write::Add>(product, row, column, sums);
      }
      return write_results<run::Write::Overwrite>(product, row, column, sums);
    }
    for (int row = tile.row; row < tile.row + kTileHigh; row += kPlainSide) {
      for (int column = tile.column; column < tile.column + kTileWide; column += kPlainSide) {
        multiply_plainly(call_, batches_, product, {tile.group, row, column});
      }
    }
  }

 private:
  static constexpr bool kIsWeight = kKind == ProductKind::WeightGradient;
  static constexpr Contiguous kA = kIsWeight ? Contiguous::Count : Contiguous::Depth;
  static constexpr Contiguous kB =
      kKind == ProductKind::Forward ? Contiguous::Depth : Contiguous::Count;
  using ASlice = SliceLayout<kA, kTileHigh>;
  using ACopies = SliceCopies<T, kA, kTileHigh>;
  using BCopies = SliceCopies<T, kB, kTileWide>;
  using AFragments = Fragments<kA, kTileHigh, Side::A>;
  using BFragments = Fragments<kB, kTileWide, Side::B>;
  // Early enough for the memory to answer, late enough for the cache to keep it.
  static constexpr int kSlicesOfPrefetch = 4;

  static __device__ bool lies_well(const Product<T, C>& product) {
    return is_aligned(product.b.data) && is_aligned(product.c);
  }
  static __device__ int warp_row() {
    return static_cast<int>(threadIdx.x) / 32 % (kTileHigh / kWarpSide) * kWarpSide;
  }
  static __device__ int warp_column() {
    return static_cast<int>(threadIdx.x) / 32 / (kTileHigh / kWarpSide) * kWarpSide;
  }
  [[nodiscard]] __device__ std::uint32_t slot_address(int slot) const {
    return slots_ + static_cast<std::uint32_t>(slot * kSlotBytes);
  }
  [[nodiscard]] __device__ std::uint32_t next(std::uint32_t slot) const {
    return slot == slot_address(kSlots - 1) ? slots_ : slot + kSlotBytes;
  }

  __device__ void copy_a(std::uint32_t slot) const {
    if (slices_to_ask_for_ <= 0) return;
#pragma unroll
    for (int i = 0; i < ACopies::kCopies; ++i) a_copies_.copy(i, slot + ACopies::offset());
  }
  template <int kFirst, int kEnd>
  __device__ void copy_b(std::uint32_t slot) const {
    if (slices_to_ask_for_ <= 0) return;
#pragma unroll
    for (int i = kFirst; i < kEnd; ++i) {
      b_copies_.copy(i, slot + ASlice::kBytes + BCopies::offset());
    }
  }
  // The copies of a slice; none are a group too, so that groups count slices.
  __device__ void end_copies() {
    close_copy_group();
    a_copies_.advance();
    b_copies_.advance();
    --slices_to_ask_for_;
    if constexpr (kIsWeight) turn_to_next_batch();
  }

  // Counts the slices of further batches, and is ready for the first slice that there is.
  __device__ void begin_further(const Tile& tile, bool lies_well) {
    copied_ = tile;
    next_batch_ = lies_well ? 0 : call_.further;
    for (int at = next_batch_; at < call_.further; ++at) {
      slices_ += static_cast<int>(parts(size_of(batches_[at], tile.group), kDeep));
    }
    turn_to_next_batch();
  }
  // All copies of a batch have been asked for: the next that has rows follows.
  __device__ void turn_to_next_batch() {
    while (slices_to_ask_for_ == 0 && next_batch_ < call_.further) {
      const auto product = product_of<T, C>(call_, batches_[next_batch_++], copied_.group);
      slices_to_ask_for_ = static_cast<int>(parts(product.depth(), kDeep));
      a_copies_ = {product.a, copied_.row};
      b_copies_ = {product.b, copied_.column};
    }
  }
  // The next slice is there, of all threads.
  static __device__ void wait_for_slice() {
    wait_for_copies<kSlots - 2>();
    __syncthreads();
  }

  __device__ void prefetch_results(const Tile& tile) const {
    if (call_.write == run::Write::Overwrite) return;
    const Product<T, C> product = product_of<T, C>(call_, tiles_, tile.group);
    constexpr int kLine = 128 / sizeof(C);
    constexpr int kLines = kTileWide / kLine;
    for (auto at = static_cast<int>(threadIdx.x); at < kTileHigh * kLines; at += kProductThreads) {
      const int row = tile.row + at / kLines;
      const int column = tile.column + at % kLines * kLine;
      if (row >= product.rows() || column >= product.columns()) continue;
      prefetch(product.c + std::int64_t{row} * product.columns() + column);
    }
  }

  const run::GroupedProduct& call_;
  const Batch* batches_;
  const GroupTiles& tiles_;
  std::uint32_t slots_;
  int slices_ = 0;             ///< of the tile
  int slices_to_ask_for_ = 0;  ///< of the batch
  Tile copied_ = {};           ///< the tile whose slices are asked for
  int next_batch_ = 0;
  ACopies a_copies_;
  BCopies b_copies_;
};

/// A kernel for GroupedProduct of one kind.
template <typename T, typename C, ProductKind kKind>
__global__ void __launch_bounds__(kProductThreads, 1)
    multiply_on_tensor_cores(const __grid_constant__ run::GroupedProduct given) {
  extern __shared__ __align__(1024) std::uint8_t slots[];
  __shared__ GroupTiles tiles;
  run::GroupedProduct call = given;
  call.kind = kKind;  // so that the compiler knows
  if constexpr (kKind != ProductKind::WeightGradient) {
    call.write = run::Write::Overwrite;
    call.further = 0;
  }
  find_tiles<kTileHigh, kTileWide>(call, given.batches, tiles);
  TileWalk<kTileHigh, kTileWide> walk(call, tiles);
  if (walk.is_over()) return;
  TileProduct<T, C, kKind> product(call, given.batches, tiles, slots);
  Tile tile = walk.tile();
  product.start(tile);
  while (true) {
    Sums sums = {};
    product.multiply(tile, sums);
    const Tile done = tile;
    walk.advance();
    const bool is_last = walk.is_over();
    if (!is_last) {
      tile = walk.tile();
      product.start(tile);
    }
    product.write(done, sums);
    if (is_last) return;
  }
}

}  // namespace capo::gpu
