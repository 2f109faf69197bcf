// Messages of NCCL between processes, for whoever drives a run: no header of NCCL's is needed here.

#pragma once

#include "core/base/result.h"
#include "run/processes/between_processes.h"

namespace capo::gpu {

/// Loads NCCL. Runs that are given the result need a CudaEngine.
[[nodiscard]] Result<run::BetweenFactory> messages_of_nccl();

}  // namespace capo::gpu
