// Names and texts of errors, as CUDA has them.

#pragma once

#include <cuda_runtime_api.h>

#include <optional>
#include <span>
#include <string_view>

namespace capo::soft_cuda {

struct NamedError {
  cudaError_t error;
  const char* name;
  const char* text;
};

/// Those that tests speak of.
[[nodiscard]] std::span<const NamedError> named_errors();
[[nodiscard]] std::optional<cudaError_t> error_named(std::string_view name);

}  // namespace capo::soft_cuda
