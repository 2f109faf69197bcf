// The replays of a run, and what they are run on, which is made once.
//
//   RunSetup    layers, parameters, inputs, outputs, transports: setup_of_run.cpp
//   RunLoop     capture, and for each replay the numbers of the step, eager execution of them, the
//               warming up (warm_up.cpp), the replay and its comparison: replays.cpp
//
// It is private to run.h's run(), which refuses steps before, and tells why one broke off. Tested
// by the tests of whole runs, tests/run/steps/ and tests/run/processes/.

#pragma once

#include "run/divided.h"
#include "run/judge.h"
#include "run/processes/own_rank.h"
#include "run/replay_mean.h"
#include "run/report.h"
#include "run/run_options.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace capo::run {

enum class Admission : std::uint8_t { Verified, Unchecked };

/// Whether this process compares eager execution with float64, which is the same in each.
[[nodiscard]] bool compares_float64(const RunOptions& options);

/// Everything that a step is run on, made once and used by every replay. If the engine refuses
/// something on the way it keeps the error, and the setup must not be used.
struct RunSetup {
  RunSetup(Engine& on, const PlannedStep& planned, const RunOptions& options, Admission admission,
           StepLayers of_step);
  RunSetup(const RunSetup&) = delete;
  RunSetup& operator=(const RunSetup&) = delete;

  [[nodiscard]] const BufferTable& table() const { return step.view().table(); }

  Engine& engine;
  const PlannedStep& step;
  StepLayers layers;
  Program program;
  StepInputs inputs;
  Deposits eager_deposits;
  Deposits replayed_deposits;
  StepOutputs eager;
  StepOutputs replayed;
  SentGradients sent_gradients;  ///< between processes
  SentRows sent_rows;
  std::unique_ptr<Transport> eager_transport;  ///< null: that of replays
  std::unique_ptr<Transport> transport;
  std::vector<DrawnTensor> parameters;
  LoadedStep loaded;
  std::unique_ptr<Expected> expected;  ///< null if nobody compares with it
  std::unique_ptr<LateReads> late;     ///< null unless the plan is unchecked
};

/// Runs a step on its setup: once eagerly, or captured and replayed again and again, with eager
/// execution of the same numbers before each replay.
class RunLoop {
 public:
  /// Adds to the report; all arguments outlive the loop.
  RunLoop(RunSetup& setup, const RunOptions& options, RunReport& report);

  void run_eagerly_only();
  void run_replays();

  /// The parameter that was gone when its gradient came.
  [[nodiscard]] const std::optional<std::string>& lost() const { return lost_; }
  /// The process that said nothing of its replays.
  [[nodiscard]] const std::optional<std::string>& silent() const { return silent_; }

 private:
  [[nodiscard]] bool failed() const { return lost_.has_value() || setup_.loaded.failed(); }
  [[nodiscard]] bool by_action() const { return options_.graphs == Granularity::PerAction; }

  void take(std::uint32_t replay);
  [[nodiscard]] double timed(const std::function<void()>& work) const;
  void step_eagerly();
  void judge_eager();
  [[nodiscard]] Program captured_program() const;
  void note_lost(const Stepper& stepper);
  void capture(Stepper& stepper);
  ReplayTimes replay_once(Stepper& stepper);
  ReplayTimes warm_up_once(const std::string& label, Stepper& stepper);
  void warm_up(const std::string& label, Stepper& stepper, ReplayMean& counted);
  void replay(std::uint32_t number, Stepper& stepper);
  void begin_at_zero();
  void gather();
  void inspect(const PlannedMemory& memory, const Stepper& stepper) const;

  RunSetup& setup_;
  Engine& engine_;
  const RunOptions& options_;
  RunReport& report_;
  Judge judge_;
  StepValues numbers_;  // of the replay at hand
  StepTimes times_;
  std::vector<double> rounds_;         // of the warm-up's second half, each with its rest
  std::optional<OwnProgram> own_;      // if each rank is a process
  std::optional<std::string> silent_;  // tells of a process that did not report
  std::optional<std::string> lost_;
};

}  // namespace capo::run
