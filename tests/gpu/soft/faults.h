// Which call fails, and what is left of it: counting, sticky errors, and CUDA's "last error".

#pragma once

#include "tests/gpu/soft/soft_cuda.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace capo::soft_cuda {

class Faults {
 public:
  explicit Faults(std::vector<Fault> faults) : faults_(std::move(faults)) {}

  /// Counts a call; its error, if it is to fail.
  [[nodiscard]] cudaError_t count(std::string_view function);
  /// Counts a kernel that is about to run on the device; whether it does.
  [[nodiscard]] bool kernel_runs();
  /// For a call that waits for the device: what went wrong there.
  [[nodiscard]] cudaError_t wait(std::string_view function);

  /// Keeps an error for cudaGetLastError; returns it.
  cudaError_t note(cudaError_t error);
  [[nodiscard]] cudaError_t last() const { return last_; }
  void forget_last();

  [[nodiscard]] const std::map<std::string, std::uint64_t>& calls() const { return calls_; }
  [[nodiscard]] const std::string& first_failed() const { return first_failed_; }
  /// Of a driver that is older than the runtime, where a fault says so.
  [[nodiscard]] int driver_version() const;

 private:
  [[nodiscard]] cudaError_t told(std::string_view function, std::uint64_t call) const;
  cudaError_t failed(std::string_view function, cudaError_t error);

  std::vector<Fault> faults_;
  std::map<std::string, std::uint64_t> calls_;
  std::uint64_t all_calls_ = 0;
  std::uint64_t kernels_ = 0;
  std::string first_failed_;
  cudaError_t last_ = cudaSuccess;
  cudaError_t broken_ = cudaSuccess;     // the sticky error, once a call has said it
  cudaError_t on_device_ = cudaSuccess;  // what no call has said yet
};

}  // namespace capo::soft_cuda
