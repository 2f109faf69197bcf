// The tensors by which executions of a step are compared, and what each left in them.
//
// Parameters are compared as a reader such as Megatron's finds them at the end of the step, and
// gradients of inputs by the rows that are in use. Both judges (judge.h) ask here what there is,
// which names it has in the report, and for its values. Tested by contract_runs_test.cpp and
// routed_runs_test.cpp.

#pragma once

#include "core/base/index.h"
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

#include <cstddef>
#include <cstdint>
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
  const Expected* expected;  ///< null if this process compares nothing with float64
  const LateReads* late;     ///< null unless the plan is unchecked
  /// The ranks whose gradients a replay made; nullopt: it made those of all.
  std::optional<RankRange> only = {};
};

class JudgedTensors {
 public:
  /// Names them in the report. Its parameters are those of the step, in their order; its
  /// gradients of inputs are those of cells_given_out(), and then those of for_each_side().
  JudgedTensors(const Compared& of, RunReport& report);

  /// From now on both executions are of these numbers, which say what rows are in use.
  void of_numbers(const StepValues& numbers) { numbers_ = &numbers; }

  [[nodiscard]] const Compared& of() const { return of_; }
  [[nodiscard]] const Cells& cells() const { return cells_; }
  [[nodiscard]] const BufferTable& table() const { return of_.step.view().table(); }

  /// The tensors whose sum a reader finds: main_grad, and .grad unless the flag says that it is
  /// in main_grad already.
  [[nodiscard]] std::vector<const GroupedTensor*> summands(const StepOutputs& outcome,
                                                           const Deposits& deposits,
                                                           std::uint32_t parameter) const;
  [[nodiscard]] std::vector<float> held(const StepOutputs& outcome, const Deposits& deposits,
                                        std::uint32_t parameter) const;
  /// Some elements of it.
  [[nodiscard]] std::vector<float> held(const StepOutputs& outcome, const Deposits& deposits,
                                        std::uint32_t parameter,
                                        const std::vector<std::int64_t>& at) const;

  /// The cells whose input gradients leave the step and are wanted.
  [[nodiscard]] const std::vector<std::uint32_t>& cells_given_out() const { return given_out_; }
  [[nodiscard]] bool gives_out(const Cells::Cell& cell) const;
  /// The rows that are in use of what a cell gives out.
  [[nodiscard]] GroupedTensor given_out_tensor(const StepOutputs& outcome,
                                               std::uint32_t cell) const;
  [[nodiscard]] std::vector<float> given_out(const StepOutputs& outcome, std::uint32_t cell) const;
  [[nodiscard]] DataType type_of(std::uint32_t cell) const;

  /// Calls visit(layer, its number, microbatch, name, member) for gradients of probabilities and
  /// of scales, which are inputs too.
  template <typename Visit>
  void for_each_side(Visit visit) const {
    for (std::size_t number = 0; number < of_.layers.all().size(); ++number) {
      const StepLayer& layer = of_.layers.all()[number];
      for (std::int32_t m = 0; m < table().microbatches(); ++m) {
        if (of_.eager.side(number, m).probabilities != nullptr) {
          visit(layer, number, m, "probabilities", &StepOutputs::SideGradients::probabilities);
        }
        if (of_.eager.side(number, m).scales != nullptr) {
          visit(layer, number, m, "scales", &StepOutputs::SideGradients::scales);
        }
      }
    }
  }

  /// The first of them among the report's gradients of inputs.
  [[nodiscard]] std::size_t first_side() const { return given_out_.size(); }
  [[nodiscard]] std::int64_t live_side(const StepLayer& layer, std::size_t number,
                                       std::int32_t microbatch) const;
  /// The values of the rows that are in use.
  [[nodiscard]] std::vector<float> side_values(const StepLayer& layer, std::size_t number,
                                               std::int32_t microbatch, const float* of) const;

 private:
  Compared of_;
  Cells cells_;
  std::vector<std::uint32_t> given_out_;
  const StepValues* numbers_ = nullptr;  // of the replay at hand
};

}  // namespace capo::run
