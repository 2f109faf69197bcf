// This file makes functions of the instructions of sm_90a that its products consist of: barriers in
// shared memory, the engine that copies tiles (TMA), descriptors for it that are made on the
// device, and products of a whole warpgroup (wgmma).
//
// Addresses in shared memory are 32-bit numbers, as these instructions take them. Every file that
// includes this one compiles for any architecture; a kernel calls these functions only where
// __CUDA_ARCH_FEAT_SM90_ALL is defined. Tested by products_test.cpp.

#pragma once

#include "gpu/kernels/tensor_core.cuh"

#include <cstdint>

namespace capo::gpu {

/// Threads of a warpgroup: four warps, of which the first has a number divisible by four.
inline constexpr int kWarpgroup = 128;

// --- barriers ------------------------------------------------------------------------------------

/// A barrier in shared memory that `arrivals` arrivals and all announced bytes complete.
__device__ inline void init_barrier(std::uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier), "r"(arrivals));
}
/// Makes initialised barriers known to the copy engine; one thread calls it after init_barrier.
__device__ inline void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
}
__device__ inline void arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(barrier) : "memory");
}
/// Arrives, and announces bytes that copies will bring.
__device__ inline void arrive_expecting(std::uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier), "r"(bytes)
               : "memory");
}
/// Waits until the phase of this parity is over. A new barrier is in phase 0, so that waiting for
/// parity 1 returns at once.
__device__ inline void wait_for(std::uint32_t barrier, std::uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred is_over;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 is_over, [%0], %1;\n"
      "@!is_over bra again;\n"
      "}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// --- clusters of blocks --------------------------------------------------------------------------

/// Kernels of clusters of so many blocks; older architectures, which do not run them, have none.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define CAPO_CLUSTERS_OF(blocks)
#else
#define CAPO_CLUSTERS_OF(blocks) __cluster_dims__(blocks, 1, 1)
#endif

__device__ inline int rank_in_cluster() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(rank));
  return rank;
}
/// Waits for all threads of the cluster.
__device__ inline void sync_cluster() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n" ::: "memory");
#endif
}
/// Arrives at the barrier that lies there in a block of the cluster. What this thread wrote before
/// is not made known to that block, which would wait for all writes to memory.
__device__ inline void arrive_at(std::uint32_t barrier, int rank) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
      "}\n" ::"r"(barrier),
      "r"(rank)
      : "memory");
#endif
}

// --- copies by the engine ------------------------------------------------------------------------

/// A descriptor of a matrix for the copy engine. Its bits are the hardware's own.
struct alignas(128) TileMap {
  std::uint32_t words[32];
};

/// A matrix, and how many rows a copy brings, of 128 bytes each or of 64. In shared memory piece p
/// of 16 bytes lies at p ^ (row % 8), or at p ^ (row / 2 % 4). Elements beyond the matrix arrive as
/// zeros. The address and the bytes of a row are multiples of 16.
struct TiledMatrix {
  const void* data;
  int rows;
  int columns;        ///< contiguous
  int element_bytes;  ///< 1, 2 or 4
  int box_rows;
  int box_bytes = 128;
};

/// For a whole warp: writes the descriptor into `draft`, which lies in shared memory.
__device__ inline void draft_map(const TiledMatrix& matrix, TileMap& draft) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  const unsigned lane = threadIdx.x % 32;
  const std::uint32_t at = shared_address(&draft);
  __syncwarp();
  draft.words[lane] = 0;
  __syncwarp();
  if (lane == 0) {
    asm volatile(
        "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;\n" ::"r"(at),
        "l"(matrix.data)
        : "memory");
    asm volatile(
        "tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], 1;\n"  // one less than it is
        "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, %1;\n"
        "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %2;\n"
        "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %3;\n"
        "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %4;\n"
        "tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %5;\n"
        "tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 0, 1;\n"
        "tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 1, 1;\n"
        "tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 0;\n"
        "tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 0;\n"  // zeros
        ::"r"(at),
        "r"(matrix.box_bytes / matrix.element_bytes), "r"(matrix.box_rows), "r"(matrix.columns),
        "r"(matrix.rows), "l"(std::int64_t{matrix.columns} * matrix.element_bytes)
        : "memory");
    if (matrix.box_bytes == 128) {
      asm volatile("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 3;\n" ::"r"(at)
                   : "memory");
    } else {
      asm volatile("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 2;\n" ::"r"(at)
                   : "memory");
    }
    if (matrix.element_bytes == 1) {
      asm volatile("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 0;\n" ::"r"(at)
                   : "memory");
    } else if (matrix.element_bytes == 2) {  // 16 bits of any kind, which are only moved
      asm volatile("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 10;\n" ::"r"(at)
                   : "memory");
    } else {
      asm volatile("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 7;\n" ::"r"(at)
                   : "memory");
    }
  }
  __syncwarp();
#endif
}
/// For one thread: changes where the matrix of a draft begins, its rows, or the rows of a copy.
__device__ inline void redraft_data(TileMap& draft, const void* data) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;\n" ::"r"(
                   shared_address(&draft)),
               "l"(data)
               : "memory");
#endif
}
__device__ inline void redraft_rows(TileMap& draft, int rows) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;\n" ::"r"(
                   shared_address(&draft)),
               "r"(rows)
               : "memory");
#endif
}
__device__ inline void redraft_box_rows(TileMap& draft, int rows) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %1;\n" ::"r"(
                   shared_address(&draft)),
               "r"(rows)
               : "memory");
#endif
}

/// Makes what another warp put into a descriptor visible to copies of this thread.
__device__ inline void acquire_map(const TileMap* map) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;\n" ::"l"(map) : "memory");
#endif
}
/// For a whole warp: puts a draft into `map`, which lies in global memory, from where copies that
/// this warp asks for afterwards may use it.
__device__ inline void put_map(const TileMap& draft, TileMap* map) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  __syncwarp();
  asm volatile(
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
      "[%0], [%1], 128;\n" ::"l"(map),
      "r"(shared_address(&draft))
      : "memory");
  acquire_map(map);
#endif
}
/// Both at once.
__device__ inline void make_map(const TiledMatrix& matrix, TileMap& draft, TileMap* map) {
  draft_map(matrix, draft);
  put_map(draft, map);
}

/// A cache policy, as createpolicy makes it: lines that are touched with it make room first.
inline constexpr std::uint64_t kEvictFirst = 0x12f0000000000000;

/// Brings the box that begins at a row and a column; its bytes complete the barrier.
__device__ inline void copy_box(std::uint32_t to, const TileMap* map, int row, int column,
                                std::uint32_t barrier) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];\n" ::"r"(to),
      "l"(map), "r"(column), "r"(row), "r"(barrier)
      : "memory");
#endif
}

/// copy_box for bytes that are needed once: they make room in the cache first.
__device__ inline void copy_box_once(std::uint32_t to, const TileMap* map, int row, int column,
                                     std::uint32_t barrier) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5;\n" ::"r"(to),
      "l"(map), "r"(column), "r"(row), "r"(barrier), "l"(kEvictFirst)
      : "memory");
#endif
}

/// Brings bytes that lie side by side; their number and both addresses are multiples of 16.
__device__ inline void copy_bytes(std::uint32_t to, const void* from, int bytes,
                                  std::uint32_t barrier) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
#endif
}

/// copy_box for both blocks of a cluster of two: the bytes arrive at the same place in each, and
/// complete the barrier there that lies where `barrier` does.
__device__ inline void copy_box_to_both(std::uint32_t to, const TileMap* map, int row, int column,
                                        std::uint32_t barrier) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;\n" ::"r"(to),
      "l"(map), "r"(column), "r"(row), "r"(barrier), "h"(std::uint16_t{3})
      : "memory");
#endif
}

/// Writes a box to memory, as far as it lies within the matrix. Its bytes make room in the cache
/// first.
__device__ inline void store_box_once(const TileMap* map, int row, int column, std::uint32_t from) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group.L2::cache_hint "
      "[%0, {%1, %2}], [%3], %4;\n"
      "cp.async.bulk.commit_group;\n" ::"l"(map),
      "r"(column), "r"(row), "r"(from), "l"(kEvictFirst)
      : "memory");
#endif
}
/// 16 bytes of shared memory.
__device__ inline uint4 load_shared_four(std::uint32_t at) {
  uint4 four;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(four.x), "=r"(four.y), "=r"(four.z), "=r"(four.w)
               : "r"(at)
               : "memory");
  return four;
}
__device__ inline void store_shared_four(std::uint32_t at, uint4 four) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};\n" ::"r"(at), "r"(four.x), "r"(four.y),
               "r"(four.z), "r"(four.w)
               : "memory");
}
/// Two neighbours in shared memory.
__device__ inline float2 load_shared_pair(std::uint32_t at) {
  float2 pair;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];\n"
               : "=f"(pair.x), "=f"(pair.y)
               : "r"(at)
               : "memory");
  return pair;
}
__device__ inline void store_shared_pair(std::uint32_t at, float2 pair) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};\n" ::"r"(at), "f"(pair.x), "f"(pair.y) : "memory");
}
__device__ inline std::uint32_t load_shared(std::uint32_t at) {
  std::uint32_t word;
  asm volatile("ld.shared.u32 %0, [%1];\n" : "=r"(word) : "r"(at) : "memory");
  return word;
}
__device__ inline std::uint32_t load_shared_half(std::uint32_t at) {
  std::uint16_t half;
  asm volatile("ld.shared.u16 %0, [%1];\n" : "=h"(half) : "r"(at) : "memory");
  return half;
}
__device__ inline std::uint32_t load_shared_byte(std::uint32_t at) {
  std::uint32_t byte;
  asm volatile("ld.shared.u8 %0, [%1];\n" : "=r"(byte) : "r"(at) : "memory");
  return byte;
}
__device__ inline void store_shared(std::uint32_t at, std::uint32_t word) {
  asm volatile("st.shared.u32 [%0], %1;\n" ::"r"(at), "r"(word) : "memory");
}

/// Waits until at most kOpen boxes of this thread are still to be read from shared memory.
template <int kOpen>
__device__ void wait_for_reads() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("cp.async.bulk.wait_group.read %0;\n" ::"n"(kOpen) : "memory");
#endif
}
/// Waits until all boxes of this thread are written.
__device__ inline void wait_for_stores() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("cp.async.bulk.wait_group 0;\n" ::: "memory");
#endif
}
/// Makes what this thread wrote to shared memory visible to the copy engine.
__device__ inline void publish_shared() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
#endif
}

// --- products of a warpgroup ---------------------------------------------------------------------

/// Each thread has this many registers from here on; a whole warpgroup calls it. A block has no
/// more in all than it was launched with: one that asks for more waits forever.
template <int kRegisters>
__device__ void take_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(kRegisters));
#endif
}
template <int kRegisters>
__device__ void give_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(kRegisters));
#endif
}

/// Says where an operand lies in boxes of 128-byte rows. Where rows go along count, pieces of 64
/// are `piece_bytes` apart; where they go along the depth, `piece_bytes` says nothing.
[[nodiscard]] __device__ constexpr std::uint64_t shared_matrix(std::uint32_t address,
                                                               int piece_bytes) {
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62;
  constexpr std::uint64_t kEightRows = std::uint64_t{1024 / 16} << 32;
  return kSwizzle128 | kEightRows | static_cast<std::uint64_t>(piece_bytes / 16) << 16 |
         (address & 0x3ffffU) / 16;
}

/// The sums may be multiplied into from here on.
__device__ inline void begin_products() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
#endif
}
/// The products since the last call are one group.
__device__ inline void close_products() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
#endif
}
/// Waits until at most kOpen groups are under way.
template <int kOpen>
__device__ void wait_for_products() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(kOpen) : "memory");
#endif
}

/// Sums of 64 x 256 elements, as multiply_bands holds them.
using WideSums = float[4][8][4];

enum class Contiguity : std::uint8_t { AlongDepth = 0, AlongCount = 1 };

#define CAPO_SUMS_OF(c, j) \
  "+f"(sums[c][j][0]), "+f"(sums[c][j][1]), "+f"(sums[c][j][2]), "+f"(sums[c][j][3])
#define CAPO_SUMS_OF_BAND(c)                                                      \
  CAPO_SUMS_OF(c, 0), CAPO_SUMS_OF(c, 1), CAPO_SUMS_OF(c, 2), CAPO_SUMS_OF(c, 3), \
      CAPO_SUMS_OF(c, 4), CAPO_SUMS_OF(c, 5), CAPO_SUMS_OF(c, 6), CAPO_SUMS_OF(c, 7)
#define CAPO_NUMBERS_32                                          \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, " \
  "%14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, " \
  "%26, %27, %28, %29, %30, %31"
#define CAPO_NUMBERS_64                                                \
  CAPO_NUMBERS_32                                                      \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44," \
  " %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, " \
  "%58, %59, %60, %61, %62, %63"
#define CAPO_NUMBERS_96                                                \
  CAPO_NUMBERS_64                                                      \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76," \
  " %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, " \
  "%90, %91, %92, %93, %94, %95"
#define CAPO_NUMBERS_128                                                  \
  CAPO_NUMBERS_96                                                         \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107," \
  " %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, "   \
  "%119, %120, %121, %122, %123, %124, %125, %126, %127"
#define CAPO_MULTIPLY(columns, types, numbers, operands, ...)                            \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." types " {" numbers \
               "}, " operands ";\n"                                                      \
               : __VA_ARGS__                                                             \
               : "l"(a), "l"(b), "n"(static_cast<int>(kA)), "n"(static_cast<int>(kB)))
#define CAPO_MULTIPLY_BANDS(types)                                                   \
  if constexpr (kBands == 1) {                                                       \
    CAPO_MULTIPLY("64", types, CAPO_NUMBERS_32, "%32, %33, 1, 1, 1, %34, %35",       \
                  CAPO_SUMS_OF_BAND(0));                                             \
  } else if constexpr (kBands == 2) {                                                \
    CAPO_MULTIPLY("128", types, CAPO_NUMBERS_64, "%64, %65, 1, 1, 1, %66, %67",      \
                  CAPO_SUMS_OF_BAND(0), CAPO_SUMS_OF_BAND(1));                       \
  } else if constexpr (kBands == 3) {                                                \
    CAPO_MULTIPLY("192", types, CAPO_NUMBERS_96, "%96, %97, 1, 1, 1, %98, %99",      \
                  CAPO_SUMS_OF_BAND(0), CAPO_SUMS_OF_BAND(1), CAPO_SUMS_OF_BAND(2)); \
  } else {                                                                           \
    CAPO_MULTIPLY("256", types, CAPO_NUMBERS_128, "%128, %129, 1, 1, 1, %130, %131", \
                  CAPO_SUMS_OF_BAND(0), CAPO_SUMS_OF_BAND(1), CAPO_SUMS_OF_BAND(2),  \
                  CAPO_SUMS_OF_BAND(3));                                             \
  }

/// sums += a b for 64 rows, bands of 64 columns and a depth of 16. It is under way until
/// wait_for_products. Element [c][j] of the sums is 16 x 8 elements at column 64 c + 8 j, of which
/// a lane holds what multiply_add of tensor_core.cuh holds.
template <typename T, Contiguity kA, Contiguity kB, int kBands>
__device__ void multiply_bands(float (&sums)[kBands][8][4], std::uint64_t a, std::uint64_t b) {
  static_assert(kBands >= 1 && kBands <= 4);
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  if constexpr (std::is_same_v<T, Bf16>) {
    CAPO_MULTIPLY_BANDS("bf16.bf16")
  } else {
    CAPO_MULTIPLY_BANDS("f16.f16")
  }
#endif
}

/// Sums of 64 x 128 elements, likewise.
using HalfSums = float[2][8][4];

/// sums = a b, or sums += a b unless it is the first, for 64 x 128 elements of E4m3 codes and a
/// depth of 32, both along the depth. It is under way until wait_for_products.
__device__ inline void multiply_codes(HalfSums& sums, std::uint64_t a, std::uint64_t b,
                                      bool is_first) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile(
      "{\n"
      ".reg .pred adds;\n"
      "setp.eq.u32 adds, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {" CAPO_NUMBERS_64
      "}, %64, %65, adds, 1, 1;\n"
      "}\n"
      : CAPO_SUMS_OF_BAND(0), CAPO_SUMS_OF_BAND(1)
      : "l"(a), "l"(b), "r"(is_first ? 1 : 0));
#endif
}

/// sums += a b for 64 x 128 elements of bf16 and a depth of 16. a is in registers, as multiply_add
/// of tensor_core.cuh takes it, which stay as they are until wait_for_products; b lies along the
/// depth.
__device__ inline void multiply_held(float (&sums)[2][8][4], const std::uint32_t (&a)[4],
                                     std::uint64_t b) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" CAPO_NUMBERS_64
               "}, {%64, %65, %66, %67}, %68, 1, 1, 1, 0;\n"
               : CAPO_SUMS_OF_BAND(0), CAPO_SUMS_OF_BAND(1)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
#endif
}

#undef CAPO_MULTIPLY_BANDS
#undef CAPO_MULTIPLY
#undef CAPO_NUMBERS_128
#undef CAPO_NUMBERS_96
#undef CAPO_NUMBERS_64
#undef CAPO_NUMBERS_32
#undef CAPO_SUMS_OF_BAND
#undef CAPO_SUMS_OF

}  // namespace capo::gpu
