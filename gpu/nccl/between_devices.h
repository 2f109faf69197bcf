// Messages of NCCL between processes, for whoever drives a run: no header of NCCL's is needed here.

#pragma once

#include "core/base/result.h"
#include "core/model/environment.h"
#include "run/processes/between_processes.h"

#include <memory>
#include <vector>

namespace capo::gpu {

/// Loads NCCL. Runs that are given the result need a CudaEngine.
[[nodiscard]] Result<run::BetweenFactory> messages_of_nccl();

/// Large messages, with which an order is walked that nobody has verified. The engine is a
/// CudaEngine and outlives them, as the processes do.
[[nodiscard]] Result<std::unique_ptr<run::MessageLibrary>> walk_of_nccl(run::Engine& engine,
                                                                        run::Processes& processes,
                                                                        capo::Communicators layout,
                                                                        std::vector<int> used);

}  // namespace capo::gpu
