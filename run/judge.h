// Holds what a replay left against eager execution, and eager execution against float64.
//
// Parameters are compared as a reader such as Megatron's finds them in the end; inputs' gradients
// by the rows that there are; both to the bit. Of an unchecked plan the reads that came too late
// are named, with what had taken their memory over. Tested through tests/run/.

#pragma once

#include "core/rules/verify.h"
#include "run/execute/late_reads.h"
#include "run/execute/step_inputs.h"
#include "run/execute/step_outputs.h"
#include "run/execute/stepper.h"
#include "run/run_report.h"
#include "run/setup/deposits.h"
#include "run/setup/step_layers.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace capo::run {

/// All of it outlives the judge.
struct Compared {
  Engine& engine;
  const PlannedStep& step;
  const StepLayers& layers;
  const std::vector<std::vector<float>>& parameters;  ///< as stored
  const Outcome& eager;
  const Outcome& replayed;
  const Deposits& eager_deposits;
  const Deposits& replayed_deposits;
  const Expected& expected;
  const LateReads* late;  ///< null: nobody watched
};

class Judge {
 public:
  /// Names the tensors in the report, and what was predicted.
  Judge(const Compared& of, RunReport& report);
  ~Judge();

  /// Eager execution of these numbers, against float64.
  void judge_eager(const GivenValues& numbers);
  /// The replay of the same numbers against it.
  void compare(std::uint32_t replay, const GivenValues& numbers, const PlannedMemory& memory);

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace capo::run
