// Measures how long the tasks of a module take on an engine, which a simulation asks for.
//
//   F1.0 dispatch-F1.0 combine-F1.0 combine-B1.0 dispatch-B1.0 I1.0 W1.0 F1.1 ... B1.1 ...
//
// A step of one chunk is run in which each task waits for the one before it, as graphs, action by
// action. A task takes the time from its beginning to that of the next one: that of its graph, of
// what stands between graphs, such as autograd's additions, and of the launch of the next, which
// matters at small sizes. The median is taken over all but the first of a kind, if there are more.
// Each microbatch has memory of its own, so that caches are as cold as in a step. Every second
// microbatch has a whole backward: it takes less than its halves and what autograd adds, since one
// graph follows the forward and not two. Halves and wholes take turns in one run, since a device's
// clock is another one in the next; a time that can only come from another run is taken in
// proportion to a forward.
//
// Autograd adds dummy gradients to .grad, under plan te after an input half too: a step is run
// once more under that plan, and the difference is a cost of its own. The first microbatch of a
// step copies the dummy, which is a little faster than the addition that is priced.
//
// Quantization takes as much of a forward and of an input half as they take longer if each call
// that quantizes is launched twice, with the SwiGLU or the gathering that such a call makes. The
// second one finds more of its operands in caches, so that it is rather too little at small sizes.
//
// A device that is at its limit of power has a higher clock where it rests a part of the time, so
// that a step with waits runs its tasks faster than one without. Where the step is warmed up for,
// it is run once more with a rest after each replay of its warm-up. Where tasks are faster then,
// the limit held them back before: a clock that needs power by its cube is lower by the cube root
// of the share of the time in which tasks ran, so that from that share follow the times of a device
// that never rests, which are those that are stated, and `rest` says how much less those with rests
// are.
//
// In one call of weight gradients (core/order/fuse_weights.h) the second and each further one take
// a share of the first: calls of several are measured in a step of their own, at its end.
//
// Times are those of a task by itself: the effect that two kernels have on each other when they run
// side by side is not in them, which is why products leave room to exchanges (engine.h). What
// computation does to a message that kernels move is measured by itself, and between two processes
// the all-to-all and the reduction of a group. Tested by measure_test.cpp; how well a simulation
// with these times predicts a device is in bench/results/.

#pragma once

#include "core/base/result.h"
#include "core/model/model.h"
#include "run/engine/engine.h"
#include "run/modules/layer.h"
#include "run/run.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace capo::run {

/// Whether tokens go to experts and back around the module.
enum class Exchanges : std::uint8_t { None, Measured };

struct MeasureOptions {
  Exchanges exchanges = Exchanges::None;
  std::uint32_t microbatches = 9;  ///< at least 2
  double warm_up = 0;              ///< as RunOptions has it; 0: `rest` is not measured
  double heating = 0;              ///< seconds more, of the first warm-up
  bool rests = false;              ///< likewise
};

/// The cost has dispatch and combine if the options ask for exchanges.
[[nodiscard]] Result<ModuleCost, RunFailure> measure_module(Engine& engine, const Module& module,
                                                            const MeasureOptions& options);

/// How fast tasks are on a device that has them for a share of the time.
struct Pace {
  double duty = 1;   ///< that share
  double takes = 0;  ///< microseconds
};

/// States the times of computation as those at a duty of 1, and `rest`. Both paces are of the same
/// tasks, the first of them those of `cost`. What is within noise, or from a device that waited for
/// its launches most of the time, is a `rest` of 0, which changes no time.
void state_rest(const Pace& working, const Pace& resting, ModuleCost& cost);

/// The share of one after the other that two ranks take side by side. They have the memory of two,
/// so that a device may have none for them where it measures the module.
[[nodiscard]] Result<double, RunFailure> measure_beside(Engine& engine, const Module& module,
                                                        MeasureOptions options);

/// Microseconds of a forward, an input half and a weight gradient of all modules together: by how
/// much another device takes longer for these is its pace.
[[nodiscard]] double computed_in(const std::map<std::string, ModuleCost>& costs);

/// The pace of process `number`, whose device takes `other` where the first one's takes `first`; an
/// error where no model file holds it, since a measurement that cannot be read is none.
[[nodiscard]] Result<double, Error> pace_of_process(std::size_t number, double first, double other);

/// Each time as the median of the same module's, measured some times. The clock of a device goes
/// down as it gets warm, by up to a tenth within one measurement.
[[nodiscard]] ModuleCost median_of(const std::vector<ModuleCost>& costs);

/// A part of a module's gradients that a reduction sums by itself.
struct SummedGradient {
  DataType type = DataType::Fp32;
  std::int64_t elements = 0;

  [[nodiscard]] std::int64_t bytes() const { return elements * bytes_of(type); }
};

/// All of them, as a run of the module has them.
[[nodiscard]] Result<std::vector<SummedGradient>, RunFailure> gradients_to_reduce(
    const Module& module, const MeasureOptions& options);

/// The cost of a message between two ranks of one process, which is a copy: a latency, which a
/// message of next to no bytes takes, and the bandwidth that `bytes` have beyond that. The error is
/// the engine's.
[[nodiscard]] Result<TransferCost, Error> measure_transfer(Engine& engine, std::int64_t bytes);

/// How long such a message takes from the end of what made it to the beginning of what reads it,
/// beyond what lies between two tasks of one rank: a copy on a stream of its own waits for one and
/// is waited for by the other. Of two ranks that do nothing else meanwhile; nullopt if the module
/// does not take what it makes.
[[nodiscard]] Result<std::optional<double>, RunFailure> measure_hop(Engine& engine,
                                                                    const Module& module,
                                                                    MeasureOptions options);

/// With the latency that is left of a hop of so many bytes, if that is more.
[[nodiscard]] TransferCost with_hop(TransferCost copy, double hop, std::int64_t bytes);

/// A module to measure on an engine.
struct Measurable {
  Engine& engine;
  const Module& module;
  MeasureOptions options;
};

/// Runs a forward, an input half and a weight gradient of a few microbatches, and calls `look` once
/// their graphs are there.
[[nodiscard]] std::optional<RunFailure> look_at_graphs(
    const Measurable& of, const std::function<void(const Inspection&)>& look);

/// From what a message of next to no bytes takes, and one of `bytes`.
[[nodiscard]] TransferCost cost_of_transfer(double latency, double whole, std::int64_t bytes);

/// Measures that between the first two processes: half of what a message takes there and back,
/// without anything else under way. Both call, and both are told. Tested by mpi_test.cpp,
/// nccl_test.cpp and measure_between_test.cpp.
[[nodiscard]] Result<TransferCost, Error> measure_transfer_between(Engine& engine,
                                                                   Processes& processes,
                                                                   const BetweenFactory& make,
                                                                   std::int64_t bytes);

/// Adds to such a cost what computation on both sides does to a message, `crowded`, and how many of
/// its bytes go `ahead` of its receive. For messages that kernels of the devices move; both
/// processes call, and the first one's figures count. The computation is the module's, over and
/// over.
[[nodiscard]] std::optional<RunFailure> measure_beside_computation(const Measurable& of,
                                                                   Processes& processes,
                                                                   const BetweenFactory& make,
                                                                   TransferCost& cost);

/// Rows that a group permutes and exchanges: each member cuts its own in as many blocks as there
/// are members.
struct ExchangedRows {
  std::int64_t count = 0;
  std::int64_t row_bytes = 0;
  std::int32_t members = 2;  ///< at least 2
};

struct ExchangeCost {
  double dispatch = 0;
  double combine = 0;
};

/// Measures a permutation with an all-to-all behind it, and one with an all-to-all in front of it.
/// The other process stands for all other members: it is sent every block but the own one, and
/// sends as much. Both processes call, and both are told. Tested by measure_between_test.cpp.
[[nodiscard]] Result<ExchangeCost, RunFailure> measure_exchanges_between(Engine& engine,
                                                                         Processes& processes,
                                                                         const BetweenFactory& make,
                                                                         const ExchangedRows& rows);

/// Measures a reduction of the module's gradients between two replicas, each of which sends its own
/// to the other and adds both up. Each further one of the members adds as much.
[[nodiscard]] Result<double, RunFailure> measure_reduction_between(const Measurable& of,
                                                                   Processes& processes,
                                                                   const BetweenFactory& make,
                                                                   std::int32_t members);

}  // namespace capo::run
