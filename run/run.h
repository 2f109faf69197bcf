// A planned step, run: eagerly and as replayed graphs, new inputs and group sizes each time, and
// every gradient compared to the bit and with float64.
//
//   auto plan = verify(input, complete_model(declared, schedule).options);
//   host::HostEngine engine;
//   auto report = run(engine, std::get<VerifiedPlan>(plan), {});
//
// Engines take a verified plan, or one that came through the unchecked door: then each weight
// gradient has a place of its own as well, every read is watched (execute/late_reads.h), and races
// are forced by launching the writer before the reader. Eager execution keeps the sound contract;
// what a replay does with gradients is the plan's: capo's own, or TransformerEngine's.
//
// The float64 reference goes with every replay's numbers, or the first one's. docs/run.md has the
// definitions. Tested by tests/run/.

#pragma once

#include "core/base/result.h"
#include "core/model/plan_options.h"
#include "core/rules/verify.h"
#include "run/engine/engine.h"
#include "run/execute/buffer_memory.h"
#include "run/execute/execution.h"
#include "run/execute/stepper.h"
#include "run/run_report.h"
#include "run/setup/values.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace capo::run {

/// What is looked at before and after replays, while graphs and memory are there.
struct Inspection {
  Engine& engine;
  const PlannedStep& step;
  const StepLayers& layers;
  const PlannedMemory& memory;
  const Given& given;
  const Outcome& outcome;
  const std::vector<GroupedTensor>& parameters;
  const std::vector<Stepper::Captured>& graphs;
};

/// Which replays' numbers eager execution is held against float64 with. It takes a processor hours
/// for the sizes that models have.
enum class Float64 : std::uint8_t { EveryReplay, FirstReplay, LeftOut };

struct RunOptions {
  Granularity graphs = Granularity::PerAction;
  std::uint32_t replays = 3;  ///< 0: eagerly once, and float64
  std::uint64_t seed = 1;
  SizeKind sizes = SizeKind::Random;
  Poison poison = Poison::On;
  Float64 float64 = Float64::EveryReplay;
  Hooks hooks;
  /// Whose contract replays keep; nothing: TransformerEngine's under its plan, else the sound one.
  std::optional<gradients::Whose> whose;
  /// Called behind the captures and behind the last replay.
  std::function<void(const Inspection&)> inspect;
};

/// Why nothing was run, or why it broke off.
struct RunFailure {
  enum class Kind : std::uint8_t {
    Refused,  ///< what is declared cannot be run
    Lost,     ///< a parameter was gone
    Broken,   ///< the engine gave up
  };
  Kind kind = Kind::Refused;
  std::string message;
  std::string help = {};  ///< may be empty
};

[[nodiscard]] Result<RunReport, RunFailure> run(Engine& engine, const VerifiedPlan& plan,
                                                const RunOptions& options);
[[nodiscard]] Result<RunReport, RunFailure> run_unchecked(Engine& engine, const UncheckedPlan& plan,
                                                          const RunOptions& options);

}  // namespace capo::run
