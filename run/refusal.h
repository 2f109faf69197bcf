// Why a run is refused before anything of it is run, and how much work its comparison with float64
// is, which is one of the reasons.
//
// Modules that cannot be run are setup/step_layers.h's concern. Tested by
// tests/run/steps/refusals_test.cpp, and by the tests of whole runs.

#pragma once

#include "core/rules/verify.h"
#include "run/execute/program.h"
#include "run/run_options.h"
#include "run/setup/step_layers.h"

#include <cstdint>
#include <optional>
#include <string>

namespace capo::run {

/// Multiply-adds of the float64 reference of one step: products forward, and backward two ways.
[[nodiscard]] double float64_work(const StepLayers& layers, std::int32_t microbatches,
                                  const RunOptions& options);
/// So many steps of a run are compared with float64.
[[nodiscard]] std::uint32_t float64_steps(const RunOptions& options);

/// A sentence that says why; nullopt if the step is run. Unchecked plans may be refused as well.
[[nodiscard]] std::optional<std::string> refusal(const PlannedStep& step, const StepLayers& layers,
                                                 const RunOptions& options);

/// A sentence that says why ranks do not exchange rows as their orders say; nullopt if they do.
/// Rows of experts are left to the next one.
[[nodiscard]] std::optional<std::string> refusal_of_crossings(const PlannedStep& step,
                                                              const StepLayers& layers,
                                                              const Program& program);
/// A sentence that says why layers that compute on rows of other ranks are not run; nullopt if they
/// are.
[[nodiscard]] std::optional<std::string> refusal_of_experts(const PlannedStep& step,
                                                            const StepLayers& layers,
                                                            const Program& program,
                                                            const RunOptions& options);

}  // namespace capo::run
