#include "gpu/runtime/check.h"
#include "gpu/runtime/device.h"

#include <cuda_runtime_api.h>

#include <string>
#include <vector>

namespace capo::gpu {

namespace {

CudaVersion to_version(int number) {
  return {.major = number / 1000, .minor = number % 1000 / 10};
}

}  // namespace

bool has_driver() {
  int driver = 0;
  const cudaError_t code = cudaDriverGetVersion(&driver);
  if (code != cudaSuccess) static_cast<void>(cudaGetLastError());
  return code == cudaSuccess && driver != 0;
}

Result<std::vector<Device>> list_devices() {
  int count = 0;
  CAPO_CUDA_TRY("list the CUDA devices", cudaGetDeviceCount(&count));
  int driver = 0;
  CAPO_CUDA_TRY("read the version of the CUDA driver", cudaDriverGetVersion(&driver));
  int runtime = 0;
  CAPO_CUDA_TRY("read the version of the CUDA runtime", cudaRuntimeGetVersion(&runtime));

  std::vector<Device> devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    cudaDeviceProp properties;
    CAPO_CUDA_TRY("read the properties of device " + std::to_string(ordinal),
                  cudaGetDeviceProperties(&properties, ordinal));
    devices.push_back({
        .ordinal = ordinal,
        .name = properties.name,
        .capability = {.major = properties.major, .minor = properties.minor},
        .bytes = properties.totalGlobalMem,
        .multiprocessors = properties.multiProcessorCount,
        .driver = to_version(driver),
        .runtime = to_version(runtime),
    });
  }
  return devices;
}

}  // namespace capo::gpu
