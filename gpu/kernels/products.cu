// This file chooses the kernel that multiplies: on tensor cores if types, sizes and addresses allow
// it, else plainly. A device of sm_90 takes the kernels of product_rows.cuh, and for gradients
// into fp32 over many rows product_turns.cuh's, if they were built (CAPO_SM90A); others take those
// of product_mma.cuh, or multiply plainly if their blocks have too little shared memory for it
// (sm_86, sm_89).
//
// Addresses of weights lie on the device and are looked at there. Tested by products_test.cpp.

#include "gpu/kernels/families.h"
#include "gpu/kernels/limits.h"
#include "gpu/kernels/product_mma.cuh"
#include "gpu/kernels/product_plain.cuh"
#include "gpu/kernels/product_rows.cuh"
#include "gpu/kernels/product_turns.cuh"
#include "gpu/kernels/product_weights.cuh"
#include "gpu/runtime/check.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <span>

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
    multiply_on_tensor_cores<Bf16, float, kWeight>, multiply_on_tensor_cores<Fp16, float, kWeight>,
    // On tensor cores of sm_90a, in the same order, and gradients of weights once more for few
    // rows.
    multiply_rows<Bf16, kForward, WideFor::Rows>, multiply_rows<Fp16, kForward, WideFor::Rows>,
    multiply_rows<Bf16, kInput, WideFor::Rows>, multiply_rows<Fp16, kInput, WideFor::Rows>,
    multiply_weights<Bf16, Bf16, WideFor::ManyRows>,
    multiply_weights<Fp16, Fp16, WideFor::ManyRows>,
    // These are into fp32.
    multiply_in_turns<Bf16>, multiply_in_turns<Fp16>,
    // Few rows.
    multiply_weights<Bf16, Bf16, WideFor::FewRows>, multiply_weights<Fp16, Fp16, WideFor::FewRows>,
    multiply_weights<Bf16, float, WideFor::FewRows>,
    multiply_weights<Fp16, float, WideFor::FewRows>,
    // A forward on sm_90a with its epilogue.
    multiply_rows<Bf16, kForward, WideFor::Epilogue>,
    multiply_rows<Fp16, kForward, WideFor::Epilogue>,
    // A gradient of the input that goes on to SwiGLU's.
    multiply_rows<Bf16, kInput, WideFor::Gates>, multiply_rows<Fp16, kInput, WideFor::Gates>};
constexpr std::size_t kPlain = kTypes * kTypes;
constexpr std::size_t kOnTensorCores = 8;
constexpr std::size_t kWeights = 4;
// A gradient of weights takes the kernel for few rows if groups have at most so many on average.
constexpr std::int64_t kFewRows = 768;
// Epilogues of the last tiles have no products beside them. With fewer tiles than so many for each
// multiprocessor that costs more than a pass over memory, which is then left to the parts.
constexpr std::int64_t kTilesForEpilogue = 4;

// Each is null if there is none for the types of a call.
struct TensorCoreKernels {
  Kernel<GroupedProduct> portable = nullptr;
  Kernel<GroupedProduct> hopper = nullptr;
};

DataType type_of_result(const GroupedProduct& call) {
  return call.kind == kWeight ? call.gradient_type : call.type;
}

Kernel<GroupedProduct> plain_kernel(const GroupedProduct& call) {
  const auto type = static_cast<std::size_t>(call.type);
  const auto result = static_cast<std::size_t>(type_of_result(call));
  return type < kTypes && result < kTypes ? kKernels[type * kTypes + result] : nullptr;
}

WideFor wide_for(const GroupedProduct& call) {
  if (!call.epilogue.is_empty()) return call.kind == kInput ? WideFor::Gates : WideFor::Epilogue;
  if (call.kind != kWeight) return WideFor::Rows;
  std::int64_t rows = call.rows.count;
  for (int at = 0; at < call.further; ++at) rows += call.batches[at].count;
  return rows <= kFewRows * call.rows.groups ? WideFor::FewRows : WideFor::ManyRows;
}

bool takes_turns(const GroupedProduct& call) {
  return call.gradient_type == DataType::Fp32 && wide_for(call) == WideFor::ManyRows;
}

TensorCoreKernels tensor_core_kernels(const GroupedProduct& call) {
  if (call.type != DataType::Bf16 && call.type != DataType::Fp16) return {};
  std::size_t at = kPlain + (call.type == DataType::Fp16 ? 1 : 0);
  if (call.kind == kInput) at += 2;
  if (call.kind == kWeight) {
    if (call.gradient_type != call.type && call.gradient_type != DataType::Fp32) return {};
    at += call.gradient_type == call.type ? 4 : 6;
  }
  std::size_t hopper = at + kOnTensorCores;
  if (wide_for(call) == WideFor::FewRows) hopper += kWeights;
  if (!call.epilogue.is_empty()) hopper += kOnTensorCores + kWeights;
  return {.portable = kKernels[at], .hopper = kKernels[hopper]};
}

bool lies_well(const GroupedProduct& call) {
  const auto is_aligned = [](const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
  };
  const std::span<const Batch> further(call.batches, static_cast<std::size_t>(call.further));
  if (call.epilogue.gated != nullptr && call.out % 16 != 0) return false;
  if (!is_aligned(call.epilogue.gates) || !is_aligned(call.epilogue.dgates)) return false;
  return call.in % 8 == 0 && call.out % 8 == 0 && is_aligned(call.x) && is_aligned(call.y) &&
         std::all_of(further.begin(), further.end(), [&](const Batch& batch) {
           return is_aligned(batch.x) && is_aligned(batch.y);
         });
}

}  // namespace

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
  status = CAPO_CUDA_CHECK_NOEXCEPT(
      cudaDeviceGetAttribute(&limits.capability, cudaDevAttrComputeCapabilityMajor, device));
  if (!status.ok()) return status;
#ifdef CAPO_SM100A
  status = CAPO_CUDA_CHECK_NOEXCEPT(
      cudaDeviceGetAttribute(&limits.minor, cudaDevAttrComputeCapabilityMinor, device));
  if (!status.ok()) return status;
#endif
  return limits;
}

Launch<GroupedProduct> launch_of(const GroupedProduct& call) {
  const TensorCoreKernels kernels = tensor_core_kernels(call);
  const auto limits = device_limits();
  if (!limits) return {.asked = limits.error()};
  const bool on_tensor_cores = kernels.portable != nullptr && lies_well(call) &&
                               limits->shared_bytes >= kDynamicBytes + kStaticBytes;
  const bool is_hopper = kHasHopper && limits->capability == 9;
  if (!call.epilogue.is_empty()) {
    const std::int64_t tiles = most_tiles<kWideHigh, kWideAcross>(call);
    const bool pays = tiles >= kTilesForEpilogue * limits->multiprocessors;
    if (!on_tensor_cores || !is_hopper || !pays) return {.apart = true};
  }
  if (!on_tensor_cores) {
    return {.kernel = plain_kernel(call),
            .blocks = blocks_for(most_tiles<kPlainSide, kPlainSide>(call)),
            .threads = kPlainThreads};
  }
  if (is_hopper && takes_turns(call)) {
    const std::int64_t clusters = most_tiles<kTurnBlocks * kTurnHigh, kTurnAcross>(call);
    const std::int64_t pairs = limits->multiprocessors / kTurnBlocks;
    return {.kernel = kernels.hopper,
            .blocks = kTurnBlocks * std::clamp<std::int64_t>(clusters, 1, pairs),
            .threads = kWideThreads,
            .shared_bytes = kTurnBytes,
            // A block of an exchange takes a multiprocessor from a pair of them, which is then no
            // place for a cluster.
            .at_once = kTurnBlocks * pairs - (kTurnBlocks - 1) * kExchangeBlocks};
  }
  if (is_hopper && call.kind != kWeight) {
    return {.kernel = kernels.hopper,
            .blocks = std::clamp<std::int64_t>(most_tiles<kRowsHigh, kWarpSide>(call), 1,
                                               limits->multiprocessors),
            .threads = kWideThreads,
            .shared_bytes = kRowBytes,
            .at_once = limits->multiprocessors};
  }
  static_assert(kTileHigh == kWideHigh && kTileWide == kWideAcross, "both have the same tiles");
  return {.kernel = is_hopper ? kernels.hopper : kernels.portable,
          .blocks = std::clamp<std::int64_t>(most_tiles<kTileHigh, kTileWide>(call), 1,
                                             limits->multiprocessors),
          .threads = is_hopper ? kWideThreads : kProductThreads,
          .shared_bytes = is_hopper ? shape_for(wide_for(call)).bytes() : kDynamicBytes,
          .at_once = limits->multiprocessors};
}

Kernels<GroupedProduct> kernels_of(std::type_identity<GroupedProduct>) {
  return kKernels;
}

}  // namespace capo::gpu
