// Measures how long the tasks of a module take on an engine, which a simulation asks for.
//
//   F1.0 dispatch-F1.0 combine-F1.0 combine-B1.0 dispatch-B1.0 B1.0 W1.0 F1.1 ...
//
// A step of one chunk is run in which each task waits for the one before it, as graphs, action by
// action. A task takes the time from its beginning to that of the next one: that of its graph, of
// what stands between graphs, such as autograd's additions, and of the launch of the next, which
// matters at small sizes. The median is taken over all microbatches but the first. Each microbatch
// has memory of its own, so that caches are as cold as in a step.
//
// Autograd adds dummy gradients to .grad, under plan te after an input half too: the step is run
// once more under that plan, and the difference is a cost of its own. The first microbatch of a
// step copies the dummy, which is a little faster than the addition that is priced. A whole
// backward takes less than its halves and that, since one graph follows the forward and not two: a
// step of whole backwards is run as well.
//
// In one call of weight gradients (core/order/fuse_weights.h) the second and each further one take
// a share of the first: calls of several are measured in a step of their own, at its end.
//
// Times are those of a task by itself: the effect that two kernels have on each other when they run
// side by side is not in them, which is why products leave room to exchanges (engine.h). Tested by
// measure_test.cpp; how well a simulation with these times predicts a device is in bench/results/.

#pragma once

#include "core/base/result.h"
#include "core/model/model.h"
#include "run/engine/engine.h"
#include "run/run.h"

#include <cstdint>
#include <vector>

namespace capo::run {

/// Whether tokens go to experts and back around the module.
enum class Exchanges : std::uint8_t { None, Measured };

struct MeasureOptions {
  Exchanges exchanges = Exchanges::None;
  std::uint32_t microbatches = 9;  ///< at least 2
};

/// The cost has dispatch and combine if the options ask for exchanges.
[[nodiscard]] Result<ModuleCost, RunFailure> measure_module(Engine& engine, const Module& module,
                                                            const MeasureOptions& options);

/// Each time as the median of the same module's, measured some times. The clock of a device goes
/// down as it gets warm, by up to a tenth within one measurement.
[[nodiscard]] ModuleCost median_of(const std::vector<ModuleCost>& costs);

/// The cost of a message between two ranks of one process: a latency, which a message of next to no
/// bytes takes, and the bandwidth that `bytes` have beyond that. The error is the engine's.
[[nodiscard]] Result<TransferCost, Error> measure_transfer(Engine& engine, std::int64_t bytes);

/// From what a message of next to no bytes takes, and one of `bytes`.
[[nodiscard]] TransferCost cost_of_transfer(double latency, double whole, std::int64_t bytes);

/// Measures that between the first two processes: half of what a message takes there and back,
/// without anything else under way. Both call, and both are told. Tested by mpi_test.cpp and
/// nccl_test.cpp.
[[nodiscard]] Result<TransferCost, Error> measure_transfer_between(Engine& engine,
                                                                   Processes& processes,
                                                                   const BetweenFactory& make,
                                                                   std::int64_t bytes);

}  // namespace capo::run
