// The functions of CUDA's runtime about devices, versions, errors and memory; and nvcc's
// registration of kernels, which has nothing to do here.

#include "tests/gpu/soft/device.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace capo::soft_cuda {

namespace {

// One, or as many as the environment says, all alike.
int devices() {
  const char* const asked = std::getenv("CAPO_SOFT_CUDA_DEVICES");
  return asked == nullptr ? 1 : std::atoi(asked);
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  CAPO_ENTER(enter(__func__));
  *count = devices();
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* ordinal) {
  CAPO_ENTER(enter(__func__));
  *ordinal = 0;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int ordinal) {
  CAPO_ENTER(enter(__func__));
  const bool known = ordinal >= 0 && ordinal < devices();
  return note(known ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaDriverGetVersion(int* version) {
  CAPO_ENTER(enter(__func__));
  *version = device().faults.driver_version();
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  CAPO_ENTER(enter(__func__));
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int ordinal) {
  CAPO_ENTER(enter(__func__));
  if (ordinal >= devices()) return note(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "software CUDA");
  properties->major = kCapabilityMajor;
  properties->totalGlobalMem = kBytes;
  properties->multiProcessorCount = kMultiprocessors;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int ordinal) {
  CAPO_ENTER(enter(__func__));
  if (ordinal >= devices()) return note(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = kMultiprocessors;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = kCapabilityMajor;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = 0;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = kSharedBytes;
      return cudaSuccess;
    default:
      return note(cudaErrorInvalidValue);
  }
}

cudaError_t cudaDeviceSynchronize() {
  CAPO_ENTER(enter_and_wait(__func__));
  while (!device().later.empty()) device().go_on();
  return cudaSuccess;
}

// --- the last error ------------------------------------------------------------------------------

cudaError_t cudaGetLastError() {
  const cudaError_t last = device().faults.last();
  device().faults.forget_last();
  return last;
}

cudaError_t cudaPeekAtLastError() {
  return device().faults.last();
}

// --- memory --------------------------------------------------------------------------------------

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  CAPO_ENTER(enter_outside_captures(__func__));
  *memory = device().memory.allocate(bytes);
  return note(*memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t cudaFree(void* memory) {
  CAPO_ENTER(enter_and_wait(__func__));
  if (memory == nullptr) return cudaSuccess;
  const bool released = device().memory.release(static_cast<std::byte*>(memory));
  return note(released ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  CAPO_ENTER(enter_and_wait(__func__));
  const void* there = kind == cudaMemcpyHostToDevice ? to : from;
  if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToHost) {
    return note(cudaErrorNotSupported);
  }
  if (!device().memory.holds(there, bytes)) return note(cudaErrorInvalidValue);
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

// Streams run at once.
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}

// --- kernels, as nvcc registers them -------------------------------------------------------------

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {
}
void __cudaUnregisterFatBinary(void**) {
}
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*,
                            dim3*, int*) {
}

void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {
}

// Only launches written <<< >>> come this way, of which there are none.
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, std::size_t*, void*) {
  return cudaErrorNotSupported;
}
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*) {
  return cudaErrorNotSupported;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t) {
  return cudaErrorNotSupported;
}

}  // extern "C"

}  // namespace capo::soft_cuda
