// What every action of a step leaves of every parameter, worked out before anything runs.
//
// One gradient book a parameter, walked in the order in which the actions run. Tested through
// tests/run/steps/contract_runs_test.cpp.

#pragma once

#include "core/frameworks/assign.h"
#include "core/frameworks/te/contract.h"
#include "core/plan/buffers.h"
#include "run/setup/deposits.h"
#include "run/setup/step_layers.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace capo::run {

/// What every action of a step leaves of every parameter, and what the reader finds in the end.
class Deposits {
 public:
  enum class Execution : std::uint8_t { Eager, Replayed };

  /// `course`: in whose order the actions run.
  Deposits(const BufferTable& table, const Course& course, const StepLayers& layers,
           gradients::Whose whose, Execution execution);

  [[nodiscard]] const Deposit& of(std::uint32_t parameter, std::int32_t microbatch,
                                  bool weight_action) const {
    const auto m = static_cast<std::size_t>(microbatch);
    return table_[parameter][m * 2 + (weight_action ? 1 : 0)];
  }
  /// Whether some action overwrites main_grad, so that nobody has to zero it.
  [[nodiscard]] bool overwrites_main_grad(std::uint32_t parameter) const;
  [[nodiscard]] const GradientBook& book(std::uint32_t parameter) const {
    return books_[parameter];
  }

 private:
  std::vector<GradientBook> books_;          // by parameter, at the end of the step
  std::vector<std::vector<Deposit>> table_;  // by parameter; of each microbatch two
};

}  // namespace capo::run
