// Which kernel multiplies: tensor cores where types, sizes and addresses allow it, else plainly.
//
// Addresses of weights lie on the device and are looked at there. A device whose blocks have too
// little shared memory for product_mma.cuh (sm_86, sm_89) multiplies plainly. Tested by
// tests/gpu/products_test.cpp.

#include "core/base/result.h"
#include "gpu/kernels/families.h"
#include "gpu/kernels/product_mma.cuh"
#include "gpu/kernels/product_plain.cuh"
#include "gpu/runtime/check.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

namespace capo::gpu {

namespace {

using run::GroupedProduct;

constexpr int kDynamicBytes = kSlots * kSlotBytes;
constexpr int kStaticBytes = static_cast<int>(sizeof(GroupTiles) + 2 * sizeof(plain::Slice)) + 64;

constexpr ProductKind kForward = ProductKind::Forward;
constexpr ProductKind kInput = ProductKind::InputGradient;
constexpr ProductKind kWeight = ProductKind::WeightGradient;

const Kernel<GroupedProduct> kKernels[] = {
    // Plain ones, by the type of operands and then of the result.
    multiply_plainly<Bf16, Bf16>, multiply_plainly<Bf16, Fp16>, multiply_plainly<Bf16, float>,
    multiply_plainly<Fp16, Bf16>, multiply_plainly<Fp16, Fp16>, multiply_plainly<Fp16, float>,
    multiply_plainly<float, Bf16>, multiply_plainly<float, Fp16>, multiply_plainly<float, float>,
    // On tensor cores, the same for bf16 and fp16.
    multiply_on_tensor_cores<Bf16, Bf16, kForward>, multiply_on_tensor_cores<Fp16, Fp16, kForward>,
    multiply_on_tensor_cores<Bf16, Bf16, kInput>, multiply_on_tensor_cores<Fp16, Fp16, kInput>,
    multiply_on_tensor_cores<Bf16, Bf16, kWeight>, multiply_on_tensor_cores<Fp16, Fp16, kWeight>,
    multiply_on_tensor_cores<Bf16, float, kWeight>, multiply_on_tensor_cores<Fp16, float, kWeight>};

DataType type_of_result(const GroupedProduct& call) {
  return call.kind == kWeight ? call.gradient_type : call.type;
}

Kernel<GroupedProduct> plain_kernel(const GroupedProduct& call) {
  const auto type = static_cast<std::size_t>(call.type);
  const auto result = static_cast<std::size_t>(type_of_result(call));
  return type < kTypes && result < kTypes ? kKernels[type * kTypes + result] : nullptr;
}

// Null where there is none for the types.
Kernel<GroupedProduct> tensor_core_kernel(const GroupedProduct& call) {
  if (call.type != DataType::Bf16 && call.type != DataType::Fp16) return nullptr;
  const auto kernels = kKernels + kTypes * kTypes + (call.type == DataType::Fp16 ? 1 : 0);
  if (call.kind == kForward) return kernels[0];
  if (call.kind == kInput) return kernels[2];
  if (call.gradient_type == call.type) return kernels[4];
  return call.gradient_type == DataType::Fp32 ? kernels[6] : nullptr;
}

bool lies_well(const GroupedProduct& call) {
  const auto is_aligned = [](const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
  };
  return call.in % 8 == 0 && call.out % 8 == 0 && is_aligned(call.x) && is_aligned(call.y);
}

struct Limits {
  int multiprocessors = 0;
  int shared_bytes = 0;  // of a block
};

// Of the current device. One that does not say is an error: to guess would be another kernel, which
// rounds otherwise.
Result<Limits, CudaStatus> device_limits() {
  int device = 0;
  Limits limits;
  auto status = CAPO_CUDA_CHECK_NOEXCEPT(cudaGetDevice(&device));
  if (!status.ok()) return status;
  status = CAPO_CUDA_CHECK_NOEXCEPT(
      cudaDeviceGetAttribute(&limits.multiprocessors, cudaDevAttrMultiProcessorCount, device));
  if (!status.ok()) return status;
  status = CAPO_CUDA_CHECK_NOEXCEPT(cudaDeviceGetAttribute(
      &limits.shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  if (!status.ok()) return status;
  return limits;
}

}  // namespace

Launch<GroupedProduct> launch_of(const GroupedProduct& call) {
  const Kernel<GroupedProduct> on_tensor_cores = tensor_core_kernel(call);
  const auto limits = device_limits();
  if (!limits) return {.asked = limits.error()};
  if (on_tensor_cores == nullptr || !lies_well(call) ||
      limits->shared_bytes < kDynamicBytes + kStaticBytes) {
    return {.kernel = plain_kernel(call),
            .blocks = blocks_for(most_tiles<kPlainSide, kPlainSide>(call)),
            .threads = kPlainThreads};
  }
  return {.kernel = on_tensor_cores,
          .blocks = std::clamp<std::int64_t>(most_tiles<kTileHigh, kTileWide>(call), 1,
                                             limits->multiprocessors),
          .threads = kProductThreads,
          .shared_bytes = kDynamicBytes,
          .at_once = limits->multiprocessors};
}

Kernels<GroupedProduct> kernels_of(std::type_identity<GroupedProduct>) {
  return kKernels;
}

}  // namespace capo::gpu
