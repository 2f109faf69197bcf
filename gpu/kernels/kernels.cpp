#include "gpu/kernels/kernels.h"
#include "gpu/kernels/families.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace capo::gpu {

namespace {

constexpr int kSharedWithoutAsking = 48 * 1024;

bool is_served(const run::GroupedProduct::Batch& batch) {
  return batch.count <= std::numeric_limits<std::int32_t>::max();
}

template <typename C>
bool is_served(const C& call) {
  if constexpr (requires { call.further; }) {
    const auto* const end = call.batches + call.further;
    if (!std::all_of(call.batches, end, [](const auto& batch) { return is_served(batch); })) {
      return false;
    }
  }
  if constexpr (requires { call.rows.groups; }) {
    return call.rows.groups <= kMostGroups &&
           call.rows.count <= std::numeric_limits<std::int32_t>::max();
  }
  return true;
}

CudaStatus launch_parts(const run::GroupedProduct& call, cudaStream_t stream, Room room);
CudaStatus launch_with_sums(run::GroupedProduct call, cudaStream_t stream, Room room);

template <typename C>
CudaStatus launch_one(const C& call, cudaStream_t stream, Room room) {
  static_assert(std::is_trivially_copyable_v<C>);
  const Launch<C> launch = launch_of(call);
  if (!launch.asked.ok()) return launch.asked;
  if constexpr (requires { call.epilogue; }) {
    if (launch.apart) return launch_parts(call, stream, room);
    if (call.epilogue.dprobabilities != nullptr) return launch_with_sums(call, stream, room);
  }
  if (launch.kernel == nullptr || !is_served(call)) {
    return CAPO_CUDA_CHECK_NOEXCEPT(cudaErrorNotSupported);
  }
  const auto* function = reinterpret_cast<const void*>(launch.kernel);
  if (launch.shared_bytes > kSharedWithoutAsking) {
    const CudaStatus status = CAPO_CUDA_CHECK_NOEXCEPT(cudaFuncSetAttribute(
        function, cudaFuncAttributeMaxDynamicSharedMemorySize, launch.shared_bytes));
    if (!status.ok()) return status;
  }
  // A device of so few multiprocessors leaves none: one block is no cluster of two.
  const std::int64_t left = launch.at_once - kExchangeBlocks;
  const bool leaves = room == Room::LeaveToExchanges && left > 0;
  // Named, since a message quotes the call.
  const dim3 blocks(static_cast<unsigned>(leaves ? std::min(launch.blocks, left) : launch.blocks));
  const dim3 threads(static_cast<unsigned>(launch.threads));
  const auto shared_bytes = static_cast<std::size_t>(launch.shared_bytes);
  C parameter = call;
  void* parameters[] = {&parameter};
  return CAPO_CUDA_CHECK_NOEXCEPT(
      cudaLaunchKernel(function, blocks, threads, parameters, shared_bytes, stream));
}

CudaStatus launch_parts(const run::GroupedProduct& call, cudaStream_t stream, Room room) {
  CudaStatus status;
  run::for_each_part(call, [&](const auto& part) {
    if (status.ok()) status = launch_one(part, stream, room);
  });
  return status;
}

// A row's gradient of its probability takes all of its columns, and so sums of several blocks.
CudaStatus launch_with_sums(run::GroupedProduct call, cudaStream_t stream, Room room) {
  const run::ProbabilityGradient then{.type = call.type,
                                      .rows = call.rows,
                                      .columns = call.in,
                                      .x = call.x,
                                      .dprobabilities = call.epilogue.dprobabilities};
  call.epilogue.dprobabilities = nullptr;
  call.epilogue.leaves_sums = true;
  const CudaStatus status = launch_one(call, stream, room);
  return status.ok() ? launch_one(then, stream, room) : status;
}

template <typename C>
bool is_kernel_of(const void* function) {
  for (const Kernel<C> kernel : kernels_of(std::type_identity<C>{})) {
    if (reinterpret_cast<const void*>(kernel) == function) return true;
  }
  return false;
}

template <std::size_t... kAt>
std::optional<run::Call> find_call(const void* function, void** parameters,
                                   std::index_sequence<kAt...>) {
  std::optional<run::Call> found;
  const auto try_as = [&]<typename C>(std::type_identity<C>) {
    if (is_kernel_of<C>(function)) found = *static_cast<const C*>(parameters[0]);
    return found.has_value();
  };
  static_cast<void>(
      (try_as(std::type_identity<std::variant_alternative_t<kAt, run::Call>>{}) || ...));
  return found;
}

}  // namespace

std::string_view name_of(const run::Call& call) {
  static constexpr std::string_view kNames[] = {"a grouped product",
                                                "a layer norm",
                                                "a layer norm's gradient",
                                                "a norm's parameter gradients",
                                                "a SwiGLU",
                                                "a SwiGLU's gradient",
                                                "a probability's gradient",
                                                "an attention",
                                                "an attention's query gradient",
                                                "an attention's key gradients",
                                                "a bias",
                                                "a bias gradient",
                                                "a scale gradient",
                                                "a router's choice",
                                                "a sorting of choices",
                                                "a combination of experts",
                                                "a router's gradient",
                                                "a quantization of rows",
                                                "a quantization of weights",
                                                "a product of codes",
                                                "a gather",
                                                "an addition",
                                                "a copy",
                                                "a fill",
                                                "a comparison",
                                                "a draw"};
  static_assert(std::size(kNames) == std::variant_size_v<run::Call>);
  return kNames[call.index()];
}

CudaStatus launch(const run::Call& call, CUstream_st* stream, Room room) {
  return std::visit([&](const auto& one) { return launch_one(one, stream, room); }, call);
}

std::optional<run::Call> call_of(const void* function, void** kernel_params) {
  return find_call(function, kernel_params,
                   std::make_index_sequence<std::variant_size_v<run::Call>>{});
}

}  // namespace capo::gpu
