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
// The float64 reference goes with every replay's numbers. docs/run.md has the definitions. Tested
// by tests/run/.

#pragma once

#include <capo/core/base/result.h>
#include <capo/core/plan/plan_options.h>
#include <capo/core/rules/verify.h>
#include <capo/run/compare/compare.h>
#include <capo/run/engine.h>
#include <capo/run/execute/buffer_memory.h>
#include <capo/run/execute/stage.h>
#include <capo/run/execute/stepper.h>
#include <capo/run/values/group_sizes.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace capo::run {

/// What is looked at before and after replays, while graphs and memory are there.
struct Inspection {
  const Engine& engine;
  const PlannedStep& step;
  const StepLayers& layers;
  const PlannedMemory& memory;
  const Given& given;
  const Outcome& outcome;
  const std::vector<GroupedTensor>& parameters;
  const std::vector<Stepper::Captured>& graphs;
};

struct RunOptions {
  Granularity graphs = Granularity::PerAction;
  std::uint32_t replays = 3;  ///< 0: eagerly once, and float64
  std::uint64_t seed = 1;
  SizeKind sizes = SizeKind::Random;
  Poison poison = Poison::On;
  Hooks hooks;
  /// Whose contract replays keep; nothing: TransformerEngine's under its plan, else the sound one.
  std::optional<gradients::Whose> whose;
  /// Called behind the captures and behind the last replay.
  std::function<void(const Inspection&)> inspect;
};

/// One gradient over all replays.
struct TensorReport {
  std::string name;
  std::int64_t elements = 0;
  std::optional<Difference> difference;   ///< from eager execution, in the first replay with one
  std::uint32_t replay = 0;               ///< which that was, from 1
  double float64_error = 0;               ///< of eager execution, the largest
  double bound = 0;                       ///< that it must keep
  std::optional<double> ascending_error;  ///< from the sum in the order of microbatches; parameters
};

/// A chunk's microbatch.
struct Victim {
  std::int32_t rank = 0;
  std::int32_t chunk = 0;
  std::int32_t microbatch = 0;

  friend auto operator<=>(const Victim&, const Victim&) = default;
};

/// Whose memory was read too late, by what it held.
struct Victims {
  std::set<Victim> static_input;
  std::set<Victim> grad_output;
  std::set<Victim> grad_input;  ///< sent on
  std::set<Victim> other;       ///< other memory of the pool

  friend bool operator==(const Victims&, const Victims&) = default;
};

struct RunBytes {
  std::int64_t planned = 0;
  std::int64_t allocated = 0;
  std::int64_t eager_peak = 0;
};

/// Microseconds, on the clock of whoever drives.
struct RunTimes {
  double capture = 0;
  double eager = 0;   ///< of one step, the median
  double replay = 0;  ///< likewise
};

struct RunReport {
  std::string engine;
  std::string device;
  bool unchecked = false;
  bool bit_equal = true;      ///< every gradient in every replay
  bool within_bounds = true;  ///< of float64
  std::vector<TensorReport> parameters;
  std::vector<TensorReport> input_gradients;
  Victims victims;                   ///< observed
  Victims predicted;                 ///< by the verifier
  std::set<Victim> wrong_gradients;  ///< microbatches whose weight gradient was not eager's
  std::vector<std::string> stories;  ///< what each victim read, and what had taken its place
  double worst_relative_error = 0;   ///< of float64
  std::size_t graphs = 0;
  std::size_t nodes = 0;
  std::uint32_t replays = 0;
  RunBytes bytes;
  RunTimes times;
  std::vector<Measured> timeline;  ///< of the last replay of actions
  Program program;                 ///< whose ops the timeline speaks of
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
};

[[nodiscard]] Result<RunReport, RunFailure> run(Engine& engine, const VerifiedPlan& plan,
                                                const RunOptions& options);
[[nodiscard]] Result<RunReport, RunFailure> run_unchecked(Engine& engine, const UncheckedPlan& plan,
                                                          const RunOptions& options);

}  // namespace capo::run
