#include "tests/gpu/soft/errors.h"

namespace capo::soft_cuda {

namespace {

#define NAMED(error, text) \
  { error, #error, text }
constexpr NamedError kErrors[] = {
    NAMED(cudaSuccess, "no error"),
    NAMED(cudaErrorInvalidValue, "invalid argument"),
    NAMED(cudaErrorMemoryAllocation, "out of memory"),
    NAMED(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    NAMED(cudaErrorInsufficientDriver,
          "CUDA driver version is insufficient for CUDA runtime version"),
    NAMED(cudaErrorInvalidDeviceFunction, "invalid device function"),
    NAMED(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    NAMED(cudaErrorInvalidDevice, "invalid device ordinal"),
    NAMED(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    NAMED(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    NAMED(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    NAMED(cudaErrorAssert, "device-side assert triggered"),
    NAMED(cudaErrorIllegalInstruction, "an illegal instruction was encountered"),
    NAMED(cudaErrorMisalignedAddress, "misaligned address"),
    NAMED(cudaErrorLaunchFailure, "unspecified launch failure"),
    NAMED(cudaErrorNotSupported, "operation not supported"),
    NAMED(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    NAMED(cudaErrorStreamCaptureInvalidated,
          "operation failed due to a previous error during capture"),
    NAMED(cudaErrorStreamCaptureMerge,
          "operation would result in a merge of separate capture sequences"),
    NAMED(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began"),
    NAMED(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    NAMED(cudaErrorStreamCaptureIsolation,
          "dependency created on uncaptured work in another stream"),
    NAMED(cudaErrorCapturedEvent,
          "operation not permitted on an event last recorded in a capturing stream"),
    NAMED(cudaErrorUnknown, "unknown error"),
};
#undef NAMED

const NamedError* find(cudaError_t error) {
  for (const NamedError& named : kErrors) {
    if (named.error == error) return &named;
  }
  return nullptr;
}

constexpr const char* kUnrecognised = "unrecognized error code";

}  // namespace

std::span<const NamedError> named_errors() {
  return kErrors;
}

std::optional<cudaError_t> error_named(std::string_view name) {
  for (const NamedError& named : kErrors) {
    if (named.name == name) return named.error;
  }
  return std::nullopt;
}

extern "C" {

const char* cudaGetErrorName(cudaError_t error) {
  const auto* named = find(error);
  return named == nullptr ? kUnrecognised : named->name;
}

const char* cudaGetErrorString(cudaError_t error) {
  const auto* named = find(error);
  return named == nullptr ? kUnrecognised : named->text;
}

}  // extern "C"

}  // namespace capo::soft_cuda
