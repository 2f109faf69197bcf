// Compares what a replay left with eager execution, and eager execution with float64.
//
// Parameters are compared as a reader such as Megatron's finds them at the end of the step;
// gradients of inputs by the rows that are in use; both to the bit. The engine compares, and only
// tensors that differ are read back, to say where and by how much. If the plan is unchecked, the
// judge names the reads that came too late, with the buffer that had taken their memory over.
// Tested by contract_runs_test.cpp, victims_test.cpp and named_schedules_test.cpp.

#pragma once

#include "core/rules/verify.h"
#include "run/execute/buffer_memory.h"
#include "run/execute/rank_range.h"
#include "run/execute/step_inputs.h"
#include "run/execute/step_outputs.h"
#include "run/execute/stepper.h"
#include "run/reference/sampled_reference.h"
#include "run/report.h"
#include "run/setup/deposits.h"
#include "run/setup/step_layers.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace capo::run {

/// The two executions that are compared. All members outlive the judge.
struct Compared {
  Engine& engine;
  const PlannedStep& step;
  const StepLayers& layers;
  const std::vector<DrawnTensor>& parameters;
  const StepOutputs& eager;
  const StepOutputs& replayed;
  const Deposits& eager_deposits;
  const Deposits& replayed_deposits;
  const Expected& expected;
  const LateReads* late;  ///< null unless the plan is unchecked
  /// The ranks whose gradients a replay made; nullopt: it made those of all.
  std::optional<RankRange> only = {};
};

class JudgedTensors;

class Judge {
 public:
  /// Names the tensors and the predicted victims in the report.
  Judge(const Compared& of, RunReport& report);
  ~Judge();

  /// Compares eager execution of these numbers with float64.
  void judge_eager(const StepValues& numbers);
  /// Compares a sample instead, which takes less than a minute at the sizes of real models.
  void judge_sample(const StepValues& numbers, const FloatSample& sample);
  /// Compares the replay of the same numbers with eager execution.
  void compare(std::uint32_t replay, const StepValues& numbers, const PlannedMemory& memory);

 private:
  RunReport& report_;
  std::unique_ptr<JudgedTensors> tensors_;
  std::vector<std::vector<float>> parameters_;  // values of all, once float64 has asked for them
  std::int32_t* differs_ = nullptr;             // on the engine
};

}  // namespace capo::run
