// A launch asks here for the numbers of the device that decide which kernel it takes.
//
// Private to gpu/kernels; tested with the kernels that it chooses.

#pragma once

#include "core/base/result.h"
#include "gpu/runtime/check.h"

namespace capo::gpu {

// The instructions of sm_90a are there only where machine code for it was built.
#ifdef CAPO_SM90A
inline constexpr bool kHasHopper = true;
#else
inline constexpr bool kHasHopper = false;
#endif

struct Limits {
  int multiprocessors = 0;
  int shared_bytes = 0;  ///< of a block
  int capability = 0;    ///< 9 of sm_90
  int minor = 0;         ///< asked for with sm_100a alone, whose instructions sm_103 lacks
};

/// Asks the current device. It is an error if it does not say: a guess would take another kernel,
/// which rounds otherwise.
[[nodiscard]] Result<Limits, CudaStatus> device_limits();

}  // namespace capo::gpu
