// A planned step, run: eagerly and as replayed graphs, new inputs and group sizes each time, and
// every gradient compared to the bit and with float64.
//
//   auto plan = verify(input, complete_model(declared, schedule).options);
//   host::HostEngine engine;
//   auto report = run(engine, std::get<VerifiedPlan>(plan), {});
//
// A run is a setup, which makes everything that the step is executed on, and a loop over replays.
// Engines take a verified plan, or one that came through the unchecked door: then each weight
// gradient has a place of its own as well, every read is watched (execute/buffer_memory.h), and
// races are forced by launching the writer before the reader. Eager execution keeps the sound
// contract; what a replay does with gradients is the plan's: capo's own, or TransformerEngine's.
//
// The float64 reference goes with every replay's numbers, or the first one's. docs/run.md has the
// definitions. Tested by contract_runs_test.cpp, named_schedules_test.cpp, races_test.cpp and
// transport_test.cpp.

#pragma once

#include "core/base/result.h"
#include "core/model/plan_options.h"
#include "core/order/input.h"
#include "core/rules/check_options.h"
#include "core/rules/verify.h"
#include "run/engine/engine.h"
#include "run/execute/buffer_memory.h"
#include "run/execute/loaded_step.h"
#include "run/execute/stepper.h"
#include "run/execute/transport.h"
#include "run/processes/between_processes.h"
#include "run/processes/walk_all.h"
#include "run/report.h"
#include "run/setup/values.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace capo::run {

/// A view of a run before and after its replays, while graphs and memory are there.
struct Inspection {
  Engine& engine;
  const PlannedStep& step;
  const StepLayers& layers;
  const PlannedMemory& memory;
  const StepInputs& inputs;
  const StepOutputs& outputs;
  const std::vector<GroupedTensor>& parameters;
  const std::vector<Stepper::Captured>& graphs;
};

/// Which replays' numbers eager execution is compared with float64 for. At the sizes of real models
/// the comparison takes a processor hours.
enum class Float64 : std::uint8_t {
  EveryReplay,
  FirstReplay,
  Sampled,  ///< a sample of the first replay's, which takes seconds
  LeftOut,
};

/// Multiply-adds of float64, about a quarter of an hour of a processor.
inline constexpr double kFloat64Limit = 1e12;
/// Rows of each microbatch, and columns of each weight (run/reference/sampled_reference.h).
inline constexpr std::int64_t kFloat64Samples = 8;

struct RunOptions {
  Granularity graphs = Granularity::PerAction;
  std::uint32_t replays = 3;  ///< 0: the step runs eagerly once and is compared with float64
  /// Seconds in which the step is replayed before each replay that counts: a device's clock goes
  /// down under load. Processes of a transport do not warm up.
  double warm_up = 0;
  std::uint64_t seed = 1;
  SizeKind sizes = SizeKind::Random;
  Poison poison = Poison::On;
  Float64 float64 = Float64::EveryReplay;
  std::int64_t float64_samples = kFloat64Samples;  ///< at least 1
  /// A run whose comparisons with float64 take more multiply-adds is refused.
  double float64_limit = kFloat64Limit;
  Hooks hooks;
  /// The contract that replays keep. Default: TE's under plan te, otherwise the sound one.
  std::optional<gradients::Contract> whose;
  /// How messages travel. Default: all ranks are in this process.
  TransportFactory transport = in_process;
  /// One process for each rank or few ranks, this one among them, and how they send; null: all
  /// ranks are in this process. Each runs the whole step eagerly and replays its own ranks, and
  /// rank 0 has the report of all. Precondition: there are as many processes as the division says.
  Processes* processes = nullptr;
  std::int32_t ranks_per_process = 1;
  MessageLibrary::Mode sends = MessageLibrary::Mode::Rendezvous;
  /// Messages between processes, by name. That of MPI needs an engine whose memory is the
  /// processor's.
  struct Between {
    std::string name = "mpi";
    BetweenFactory make = between_processes;
    bool can_be_captured = false;  ///< a graph of a whole step can hold them
    /// Kernels of the device move them, beside which products leave some of it free.
    bool on_device = false;
  } between;
  /// Called after the captures and after the last replay.
  std::function<void(const Inspection&)> inspect;
  /// Called with the number of each replay that was run and compared.
  std::function<void(std::uint32_t)> replayed;
};

/// Why nothing was run, or why it broke off.
struct RunFailure {
  enum class Kind : std::uint8_t {
    Refused,  ///< the declared step cannot be run
    Lost,     ///< a parameter was gone
    Broken,   ///< the engine or the transport gave up
  };
  Kind kind = Kind::Refused;
  std::string message;
  std::string help = {};  ///< may be empty
};

[[nodiscard]] Result<RunReport, RunFailure> run(Engine& engine, const VerifiedPlan& plan,
                                                const RunOptions& options);
[[nodiscard]] Result<RunReport, RunFailure> run_unchecked(Engine& engine, const UncheckedPlan& plan,
                                                          const RunOptions& options);

/// The state in which an order stays for ever that is rejected for its transfers: what each stream
/// would run next, and what that waits for, a line a stream. The task graph is stepped through as
/// the host engine would, every task as soon as all that it waits for is over. If every transfer
/// meets some other end, a line says that nothing waits; the text is empty if no task graph can be
/// made of the step. Where there are `processes`, all of them are to call, and walk the task graph
/// as ranks with these messages; one more line says whether they came as far and no further. Tested
/// over the corpus of the transfer rules by run_corpus_test.cpp.
[[nodiscard]] std::string stuck_state(const Input& input, const CheckOptions& options,
                                      Processes* processes = nullptr,
                                      const WalkMessages& messages = {});

}  // namespace capo::run
