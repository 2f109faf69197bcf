// CUTLASS's grouped products behind a C function, so that peers.py can race them.
//
//   pip download --no-deps nvidia-cutlass==4.2.0.0 && unzip -d cutlass nvidia_cutlass-*.whl
//   nvcc="nvcc -std=c++17 -O3 -DNDEBUG -gencode arch=compute_90a,code=sm_90a -Xcompiler=-fPIC
//     --expt-relaxed-constexpr -Icutlass/cutlass_library/source/include
//     bench/gpu/cutlass_grouped.cu"
//   for tile in 0 1 2 3 4; do $nvcc -DTILE=$tile -c -o tile$tile.o & done; $nvcc -c -o call.o; wait
//   nvcc -shared -cudart static -o libcutlass.so call.o tile[0-4].o && strip libcutlass.so
//
// Sizes of groups are read on the device: a small kernel lists each group's shape, pointers and
// strides, and CUTLASS schedules tiles by that list. A replay of a graph therefore multiplies other
// rows once the sizes have changed. A choice is a tile and the direction in which tiles follow each
// other; every tile is three kernels, which CUTLASS's builders make from the types below in an
// object of its own, because they take minutes to compile.
//
// It is in no build of ours, which depends on CUTLASS nowhere.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <tuple>

#include "cutlass/cutlass.h"
#include "cutlass/numeric_types.h"

#include "cute/layout.hpp"

namespace cutlass_grouped {

using Half = cutlass::bfloat16_t;
using Shape = cute::Shape<int, int, int>;

enum Pass { kForward, kDgrad, kWgrad };

struct Call {
  Pass pass;
  std::int64_t groups;
  const std::int64_t* sizes;
  std::int64_t in, out;
  const Half *x, *y, *w;
  void* result;
};

/// CUTLASS's lists, an entry a group. A stride is a tuple of CuTe's with one number in it.
struct Lists {
  Shape* shapes;
  const Half** a;
  const Half** b;
  void** result;
  std::int64_t* a_stride;
  std::int64_t* b_stride;
  std::int64_t* result_stride;
};

struct Launch {
  Call call;
  Lists lists;
  bool goes_down_first;
  int processors;
  char* workspace;
  std::int64_t workspace_bytes;
  cudaStream_t stream;
};

/// Multiplies by one of the tiles. The result is 0, or minus CUTLASS's status.
template <int tile>
int multiply_by(const Launch& launch);

}  // namespace cutlass_grouped

#ifdef TILE

#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/group_array_problem_shape.hpp"
#include "cutlass/gemm/kernel/gemm_universal.hpp"

namespace cutlass_grouped {

using Row = cutlass::layout::RowMajor;
using Column = cutlass::layout::ColumnMajor;

/// The layouts of both operands, and what is read before a result is written.
template <Pass>
struct Types;
template <>
struct Types<kForward> {
  using A = Row;
  using B = Column;
  using Source = void;
  using Result = Half;
};
template <>
struct Types<kDgrad> {
  using A = Row;
  using B = Row;
  using Source = void;
  using Result = Half;
};
template <>
struct Types<kWgrad> {
  using A = Column;
  using B = Row;
  using Source = float;
  using Result = float;
};

struct Cooperative {
  using Kernel = cutlass::gemm::KernelPtrArrayTmaWarpSpecializedCooperative;
  using Epilogue = cutlass::epilogue::PtrArrayTmaWarpSpecializedCooperative;
};
struct Pingpong {
  using Kernel = cutlass::gemm::KernelPtrArrayTmaWarpSpecializedPingpong;
  using Epilogue = cutlass::epilogue::PtrArrayTmaWarpSpecializedPingpong;
};

/// A tile of a result, from slices of 64, and the blocks of a cluster that share what they read.
template <class Schedule_, int kRows, int kColumns, int kBlocksDown, int kBlocksAcross>
struct Tile {
  using Schedule = Schedule_;
  using Block = cute::Shape<cute::Int<kRows>, cute::Int<kColumns>, cute::_64>;
  using Cluster = cute::Shape<cute::Int<kBlocksDown>, cute::Int<kBlocksAcross>, cute::_1>;
};

template <Pass pass, class T>
struct Product {
  using Types = cutlass_grouped::Types<pass>;
  using Result = typename Types::Result;
  static constexpr int kPerVector = 16 / sizeof(Result);
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, typename T::Block, typename T::Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, typename Types::Source, Row*,
      kPerVector, Result, Row*, kPerVector, typename T::Schedule::Epilogue,
      cutlass::epilogue::fusion::LinearCombination<Result, float, typename Types::Source,
                                                   float>>::CollectiveOp;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Half, typename Types::A*, 8, Half,
      typename Types::B*, 8, float, typename T::Block, typename T::Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(
          sizeof(typename Epilogue::SharedStorage))>,
      typename T::Schedule::Kernel>::CollectiveOp;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<cutlass::gemm::kernel::GemmUniversal<
      cutlass::gemm::GroupProblemShape<Shape>, Mainloop, Epilogue>>;
};

using Tiles = std::tuple<Tile<Cooperative, 128, 256, 2, 1>, Tile<Pingpong, 128, 128, 2, 1>,
                         Tile<Cooperative, 128, 256, 1, 1>, Tile<Cooperative, 256, 128, 1, 2>,
                         Tile<Pingpong, 64, 256, 1, 1>>;

template <Pass pass, class T>
auto arguments_of(const Launch& launch) {
  using Gemm = typename Product<pass, T>::Gemm;
  using Kernel = typename Gemm::GemmKernel;
  using Result = typename Product<pass, T>::Result;
  using StrideA = typename Kernel::InternalStrideA;
  using StrideB = typename Kernel::InternalStrideB;
  using StrideD = typename Kernel::InternalStrideD;
  static_assert(sizeof(StrideA) == 8 && sizeof(StrideB) == 8 && sizeof(StrideD) == 8);
  const Lists& lists = launch.lists;
  auto** result = reinterpret_cast<Result**>(lists.result);
  auto* result_stride = reinterpret_cast<StrideD*>(lists.result_stride);
  typename Gemm::Arguments arguments{};
  arguments.mode = cutlass::gemm::GemmUniversalMode::kGrouped;
  arguments.problem_shape = {static_cast<int>(launch.call.groups), lists.shapes, nullptr};
  arguments.mainloop.ptr_A = lists.a;
  arguments.mainloop.dA = reinterpret_cast<StrideA*>(lists.a_stride);
  arguments.mainloop.ptr_B = lists.b;
  arguments.mainloop.dB = reinterpret_cast<StrideB*>(lists.b_stride);
  arguments.epilogue.thread.alpha = 1;
  arguments.epilogue.thread.beta = pass == kWgrad ? 1 : 0;
  if constexpr (pass == kWgrad) arguments.epilogue.ptr_C = const_cast<const Result**>(result);
  arguments.epilogue.dC = result_stride;
  arguments.epilogue.ptr_D = result;
  arguments.epilogue.dD = result_stride;
  arguments.hw_info.sm_count = launch.processors;
  using Order = decltype(arguments.scheduler.raster_order);
  arguments.scheduler.raster_order = launch.goes_down_first ? Order::AlongM : Order::AlongN;
  return arguments;
}

template <Pass pass, class T>
int multiply(const Launch& launch) {
  using Gemm = typename Product<pass, T>::Gemm;
  const auto arguments = arguments_of<pass, T>(launch);
  if (static_cast<std::int64_t>(Gemm::get_workspace_size(arguments)) > launch.workspace_bytes) {
    return -static_cast<int>(cutlass::Status::kErrorWorkspaceNull);
  }
  cutlass::Status status = Gemm::can_implement(arguments);
  Gemm gemm;
  if (status == cutlass::Status::kSuccess) {
    status = gemm.initialize(arguments, launch.workspace, launch.stream);
  }
  if (status == cutlass::Status::kSuccess) status = gemm.run(launch.stream);
  return -static_cast<int>(status);
}

template <>
int multiply_by<TILE>(const Launch& launch) {
  using T = std::tuple_element_t<TILE, Tiles>;
  if (launch.call.pass == kForward) return multiply<kForward, T>(launch);
  if (launch.call.pass == kDgrad) return multiply<kDgrad, T>(launch);
  return multiply<kWgrad, T>(launch);
}

}  // namespace cutlass_grouped

#else

namespace {

using namespace cutlass_grouped;

constexpr int (*kTiles[])(const Launch&) = {multiply_by<0>, multiply_by<1>, multiply_by<2>,
                                            multiply_by<3>, multiply_by<4>};

constexpr std::int64_t kBytesPerGroup = 7 * 16;  // an entry of each list, the largest of 12 bytes

std::int64_t list_bytes(std::int64_t groups) {
  return (groups * kBytesPerGroup + 255) / 256 * 256;
}

Lists lists_at(char* workspace, std::int64_t groups) {
  const auto part = [&](int list) { return static_cast<void*>(workspace + list * groups * 16); };
  return {static_cast<Shape*>(part(0)),        static_cast<const Half**>(part(1)),
          static_cast<const Half**>(part(2)),  static_cast<void**>(part(3)),
          static_cast<std::int64_t*>(part(4)), static_cast<std::int64_t*>(part(5)),
          static_cast<std::int64_t*>(part(6))};
}

__global__ void list_groups(Call call, Lists to) {
  const std::int64_t group = blockIdx.x * blockDim.x + threadIdx.x;
  if (group >= call.groups) return;
  std::int64_t first = 0;
  for (std::int64_t before = 0; before < group; ++before) first += call.sizes[before];
  const int rows = static_cast<int>(call.sizes[group]);
  const int in = static_cast<int>(call.in), out = static_cast<int>(call.out);
  const Half* x = call.x + first * call.in;
  const Half* y = call.y + first * call.out;
  const std::int64_t weight = group * call.in * call.out;
  if (call.pass == kWgrad) {
    // A group without rows has no tile, since its sums would be of no products.
    to.shapes[group] = {rows == 0 ? 0 : out, in, rows};
    to.a[group] = y;
    to.b[group] = x;
    to.result[group] = static_cast<float*>(call.result) + weight;
  } else {
    const bool is_forward = call.pass == kForward;
    to.shapes[group] = {rows, is_forward ? out : in, is_forward ? in : out};
    to.a[group] = is_forward ? x : y;
    to.b[group] = call.w + weight;
    to.result[group] = static_cast<Half*>(call.result) + first * (is_forward ? call.out : call.in);
  }
  to.a_stride[group] = call.pass == kForward ? call.in : call.out;
  to.b_stride[group] = call.in;
  to.result_stride[group] = call.pass == kForward ? call.out : call.in;
}

}  // namespace

/// The number of choices: each tile twice (first down, then across).
extern "C" int cutlass_choices() {
  return 2 * static_cast<int>(std::size(kTiles));
}

/// Bytes of a workspace of any choice on a device of so many processors: lists, and descriptors, of
/// which a block has at most two of operands, one of what is added to and two of results.
extern "C" std::int64_t cutlass_workspace(std::int64_t groups, int processors) {
  return list_bytes(groups) + 256 * 8 + std::int64_t{processors} * 5 * 128;
}

/// Multiplies; kinds are forward, dgrad and wgrad. `result` is bf16, or fp32 that wgrad adds to.
/// The result is 0, CUDA's error, or minus CUTLASS's status.
extern "C" int cutlass_multiply(int kind, int choice, std::int64_t groups,
                                const std::int64_t* sizes, std::int64_t in, std::int64_t out,
                                const void* x, const void* y, const void* w, void* result,
                                int processors, void* workspace, void* stream) {
  auto* const on = static_cast<cudaStream_t>(stream);
  auto* const bytes = static_cast<char*>(workspace);
  const Call call{static_cast<Pass>(kind),
                  groups,
                  sizes,
                  in,
                  out,
                  static_cast<const Half*>(x),
                  static_cast<const Half*>(y),
                  static_cast<const Half*>(w),
                  result};
  const Lists lists = lists_at(bytes, groups);
  constexpr int kThreads = 128;
  list_groups<<<static_cast<unsigned>((groups + kThreads - 1) / kThreads), kThreads, 0, on>>>(
      call, lists);
  const cudaError_t listed = cudaGetLastError();
  if (listed != cudaSuccess) return listed;
  const std::int64_t used = list_bytes(groups);
  return kTiles[choice / 2]({call, lists, choice % 2 == 0, processors, bytes + used,
                             cutlass_workspace(groups, processors) - used, on});
}

#endif
