// A grouped product behind a C function, so that peers.py can launch it on a stream of PyTorch's.
//
//   nvcc -std=c++20 -O3 -DCAPO_SM90A -I. -Xcompiler=-fPIC -shared -cudart static
//     -gencode arch=compute_90a,code=sm_90a -o libgrouped.so bench/gpu/grouped_call.cu
//     gpu/kernels/products.cu gpu/runtime/check.cpp
//
// It is in no build of ours: a shared library of its own needs other flags than the rest.

#include "gpu/kernels/families.h"

#include <cuda_runtime_api.h>

#include <cstdint>

/// Launches what capo::gpu::launch would. Types, kinds and writes are numbers of capo's enums. The
/// result is 0, or CUDA's error.
extern "C" int grouped(int kind, int type, int gradient_type, int write, std::int64_t count,
                       std::int64_t groups, const std::int64_t* sizes, std::int64_t in,
                       std::int64_t out, void* x, void* y, void* const* w, void* stream) {
  using capo::run::GroupedProduct;
  GroupedProduct call{.kind = static_cast<GroupedProduct::Kind>(kind),
                      .type = static_cast<capo::DataType>(type),
                      .gradient_type = static_cast<capo::DataType>(gradient_type),
                      .write = static_cast<capo::run::Write>(write),
                      .rows = {.count = count, .groups = groups, .sizes = sizes},
                      .in = in,
                      .out = out,
                      .x = x,
                      .y = y,
                      .w = w};
  const auto launch = capo::gpu::launch_of(call);
  if (!launch.asked.ok()) return launch.asked.code;
  if (launch.kernel == nullptr) return cudaErrorNotSupported;
  const auto* function = reinterpret_cast<const void*>(launch.kernel);
  const cudaError_t asked = cudaFuncSetAttribute(
      function, cudaFuncAttributeMaxDynamicSharedMemorySize, launch.shared_bytes);
  if (asked != cudaSuccess) return asked;
  void* parameters[] = {&call};
  return cudaLaunchKernel(function, dim3(static_cast<unsigned>(launch.blocks)),
                          dim3(static_cast<unsigned>(launch.threads)), parameters,
                          static_cast<std::size_t>(launch.shared_bytes),
                          static_cast<cudaStream_t>(stream));
}
