// The operands of a tile in shared memory: slices of kDeep along the depth, how they get there and
// how tensor cores take them from there.
//
// A slice is kCount x kDeep elements of 16 bits in pieces of 16 bytes, in rows as the operand is
// contiguous. Piece p of row r lies at p ^ (r % 8), so that eight rows at one piece, which is what
// ldmatrix reads, and one row at eight pieces, which is what a copy writes, use all banks once:
//
//   contiguous depth   kCount rows of kDeep elements, 8 pieces a row
//   contiguous count   kDeep rows of kCount elements, kCount / 8 pieces a row; read transposed
//
// Beyond the operand's ends there are zeros: zeros of both operands where the depth ends, so that a
// neighbour's infinity is not multiplied by zero. Tested by tests/gpu/products_test.cpp.

#pragma once

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

}  // namespace capo::gpu
