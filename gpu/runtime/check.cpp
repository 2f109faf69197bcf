#include "gpu/runtime/check.h"

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

namespace capo::gpu {

namespace {

/// The file as the tree names it, since the compiler's name depends on where the tree lies.
std::string_view path_in_tree(std::string_view file) {
  for (const std::string_view part : {"/tests/gpu/", "/gpu/"}) {
    if (const std::size_t at = file.rfind(part); at != file.npos) return file.substr(at + 1);
  }
  return file;
}

/// Makes "13.0" of 13000.
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// The driver that is too old may be no driver at all, which CUDA calls version 0.
std::string help_with_driver() {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
  const std::string needed = "CUDA " + version_text(CUDART_VERSION);
  if (driver == 0) {
    return "install an NVIDIA driver for " + needed +
           " or newer; in a container, start it with the host's GPUs passed in";
  }
  return "this driver is for CUDA " + version_text(driver) + ", capo was built for " + needed +
         ": update the driver or build capo with an older toolkit";
}

std::string help_for(cudaError_t code) {
  switch (code) {
    case cudaErrorInsufficientDriver:
      return help_with_driver();
    case cudaErrorNoDevice:
      return "check that `nvidia-smi -L` lists a device, that CUDA_VISIBLE_DEVICES does not hide "
             "it, and that a container was given it";
    case cudaErrorMemoryAllocation:
      return "declare smaller shapes with --model, or take this machine's memory with --device "
             "host";
    case cudaErrorAssert:
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorLaunchFailure:
    case cudaErrorMisalignedAddress:
      return "a kernel failed on the device; CUDA says so at some later call, so what is named "
             "here "
             "may not be what failed: compute-sanitizer on the same command names the kernel";
    default:
      return "";
  }
}

}  // namespace

CudaStatus note_status(int code, const char* call, const char* file, int line) noexcept {
  if (code != cudaSuccess) static_cast<void>(cudaGetLastError());
  return {.code = code, .call = call, .file = file, .line = line};
}

Error to_error(std::string_view tried, const CudaStatus& status) {
  const auto code = static_cast<cudaError_t>(status.code);
  std::string message = "cannot ";
  message.append(tried).append(": ").append(status.call).append(" gave ");
  message.append(cudaGetErrorName(code)).append(" (").append(cudaGetErrorString(code));
  message.append(") at ").append(path_in_tree(status.file));
  message.append(":").append(std::to_string(status.line));
  return {.kind = ErrorKind::Environment, .message = message, .help = help_for(code)};
}

}  // namespace capo::gpu
