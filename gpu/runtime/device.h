// The CUDA devices of this machine, as plain values that a report names.
//
// Asking creates no context and reserves no memory on any device. A machine without a device or
// without a driver is an Error of kind Environment, never an empty list. Tested by device_test.cpp.

#pragma once

#include "core/base/result.h"

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace capo::gpu {

/// The version of the machine code that a device runs: 9.0 is Hopper.
struct ComputeCapability {
  int major = 0;
  int minor = 0;

  friend auto operator<=>(const ComputeCapability&, const ComputeCapability&) = default;
};

/// A release of CUDA, 13.0 or 12.8.
struct CudaVersion {
  int major = 0;
  int minor = 0;

  friend auto operator<=>(const CudaVersion&, const CudaVersion&) = default;
};

struct Device {
  int ordinal = 0;   ///< as cudaSetDevice takes it: CUDA_VISIBLE_DEVICES has chosen and numbered
  std::string name;  ///< "NVIDIA H200"
  ComputeCapability capability;
  std::uint64_t bytes = 0;  ///< all of its memory, in use or not
  int multiprocessors = 0;  ///< streaming multiprocessors (SMs)
  CudaVersion driver;       ///< the newest CUDA that the installed driver serves
  CudaVersion runtime;      ///< the CUDA runtime linked into capo

  friend bool operator==(const Device&, const Device&) = default;
};

/// Whether a driver of CUDA is installed, be it too old for capo.
[[nodiscard]] bool has_driver();

/// All devices visible to this process, by ordinal; at least one, or the reason why there is none.
[[nodiscard]] Result<std::vector<Device>> list_devices();

}  // namespace capo::gpu
