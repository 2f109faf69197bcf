// How the messages of a run travel: the division of its ranks over processes, and the transport
// that its options ask for, which is told what each message is and who waits for it.
//
// Tested by tests/run/steps/transport_test.cpp and tests/run/processes/.

#pragma once

#include "core/rules/verify.h"
#include "run/execute/program.h"
#include "run/execute/rank_range.h"
#include "run/execute/transport.h"
#include "run/run_options.h"
#include "run/setup/step_layers.h"

#include <memory>
#include <optional>

namespace capo::run {

[[nodiscard]] Division division_of(const PlannedStep& step, const RunOptions& options);
/// The ranks of this process; nullopt if all ranks are in one.
[[nodiscard]] std::optional<RankRange> own_ranks(const PlannedStep& step,
                                                 const RunOptions& options);
[[nodiscard]] std::unique_ptr<Transport> transport_of(Engine& engine, const PlannedStep& step,
                                                      const StepLayers& layers,
                                                      const Program& program,
                                                      const RunOptions& options);

}  // namespace capo::run
