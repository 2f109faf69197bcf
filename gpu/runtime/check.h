// The two checks that every CUDA call of capo goes through. A call that failed is quoted as it was
// written, with CUDA's name and text for the error and the place:
//
//   cannot list the CUDA devices: cudaGetDeviceCount(&count) gave cudaErrorNoDevice (no
//   CUDA-capable device is detected) at gpu/runtime/device.cu:21
//
// CAPO_CUDA_TRY is for functions that return a Result: it returns the Error from them.
// CAPO_CUDA_CHECK_NOEXCEPT is for destructors, which can tell nobody: it throws nothing, allocates
// nothing and yields the result as a plain value, to be kept for a report or dropped by name.
//
//   Result<Stream> make_stream() {
//     cudaStream_t stream = nullptr;
//     CAPO_CUDA_TRY("create a stream", cudaStreamCreate(&stream));
//     return Stream(stream);
//   }
//   Stream::~Stream() { static_cast<void>(CAPO_CUDA_CHECK_NOEXCEPT(cudaStreamDestroy(stream_))); }
//
// Both clear CUDA's own "last error", so that a later check of a kernel launch, which has to ask
// for it, is not told about this call. An error that has broken the context comes back from every
// call that follows: dropping it in a destructor does not hide it.
//
// This header needs no CUDA header; the file that makes the call has included it. Tested by
// check_test.cpp.

#pragma once

#include "core/base/error.h"

#include <string_view>

namespace capo::gpu {

/// The result of one CUDA call.
struct [[nodiscard]] CudaStatus {
  int code = 0;  ///< a cudaError_t; 0 is cudaSuccess
  const char* call = "";
  const char* file = "";
  int line = 0;

  [[nodiscard]] bool ok() const { return code == 0; }
};

/// Notes a call's outcome and clears CUDA's last error if it failed.
CudaStatus note_status(int code, const char* call, const char* file, int line) noexcept;

/// Words a failed call as an Error of kind Environment; `tried` completes "cannot ...". Help is
/// given if the code tells what the machine lacks: a driver, a newer one, or a device.
[[nodiscard]] Error to_error(std::string_view tried, const CudaStatus& status);

}  // namespace capo::gpu

/// `const CudaStatus status = CAPO_CUDA_CHECK_NOEXCEPT(cudaFree(bytes_));`
#define CAPO_CUDA_CHECK_NOEXCEPT(...) \
  ::capo::gpu::note_status(static_cast<int>(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)

/// `CAPO_CUDA_TRY("allocate the arena", cudaMalloc(&bytes, size));` in a function returning Result.
#define CAPO_CUDA_TRY(tried, ...)                                                            \
  do {                                                                                       \
    if (const auto capo_status = CAPO_CUDA_CHECK_NOEXCEPT(__VA_ARGS__); !capo_status.ok()) { \
      return ::capo::gpu::to_error(tried, capo_status);                                      \
    }                                                                                        \
  } while (false)
