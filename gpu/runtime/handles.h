// CUDA's handles as values that own what they name: one thin move-only type each.
//
// They are destroyed without a word, since a destructor can tell nobody, and an error that broke
// the context comes back from every call that follows. They are for files that include CUDA's
// headers. Tested by soft_cuda_test.cpp and failures_test.cpp.

#pragma once

#include "gpu/runtime/check.h"

#include <cuda_runtime_api.h>

#include <utility>

namespace capo::gpu {

/// `Destroy` is the call of CUDA that gives the handle back.
template <typename Handle, cudaError_t (*Destroy)(Handle)>
class Owned {
 public:
  Owned() = default;
  explicit Owned(Handle handle) : handle_(handle) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (handle_ != nullptr) static_cast<void>(CAPO_CUDA_CHECK_NOEXCEPT(Destroy(handle_)));
  }

  [[nodiscard]] Handle get() const { return handle_; }

 private:
  Handle handle_ = nullptr;
};

using Stream = Owned<cudaStream_t, cudaStreamDestroy>;
using Event = Owned<cudaEvent_t, cudaEventDestroy>;
using Graph = Owned<cudaGraph_t, cudaGraphDestroy>;
using GraphExec = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;

}  // namespace capo::gpu
