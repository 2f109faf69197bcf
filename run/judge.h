// Compares what a replay left with eager execution, and eager execution with float64.
//
// Parameters are compared as a reader such as Megatron's finds them at the end of the step;
// gradients of inputs by the rows that are in use; both to the bit. The engine compares, and only
// tensors that differ are read back, to say where and by how much. If the plan is unchecked, the
// judge names the reads that came too late, with the buffer that had taken their memory over.
// Tested by contract_runs_test.cpp, victims_test.cpp and named_schedules_test.cpp.

#pragma once

#include "run/execute/buffer_memory.h"
#include "run/judged_tensors.h"
#include "run/reference/float_sample.h"
#include "run/report.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace capo::run {

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
