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
#include "core/order/input.h"
#include "core/rules/check_options.h"
#include "core/rules/verify.h"
#include "run/engine/engine.h"
#include "run/execute/buffer_memory.h"
#include "run/execute/stepper.h"
#include "run/processes/walk_all.h"
#include "run/report.h"
#include "run/run_options.h"

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
