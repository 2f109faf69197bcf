// This is a run whose ranks are divided over processes: which of them are here, how
// messages travel between them, and how they come to one report. A run in one process has a
// division as well.
//
// Each process packs what its own ranks' replays showed, and rank 0 adds that to its own.
//
//   rank 1, 2, ..   packed(report, times)  ->  a text of bytes
//   rank 0          add(report, times, text) for each rank, then the medians of `times`
//
// Eager execution and its comparison with float64 are the same in every process, so rank 0's stand.
// All else belongs to one rank alone and is united; of times of a whole step the longest counts.
//
// Each process times its ops from a beginning of its own. Processes of one machine share a clock,
// on which each says when that was, and how exactly it knows; so all times are put on rank 0's
// axis, and the report says by how much they may be off. Another machine has another clock: times
// of its ops are left out, and the report says that too.
//
// Tested by tests/run/steps/transport_test.cpp, tests/run/processes/ and tests/cli/mpi_test.cpp.

#pragma once

#include "core/rules/verify.h"
#include "run/execute/program.h"
#include "run/execute/rank_range.h"
#include "run/execute/sent_gradients.h"
#include "run/execute/sent_rows.h"
#include "run/execute/stepper.h"
#include "run/execute/transport.h"
#include "run/report.h"
#include "run/run_options.h"
#include "run/setup/step_layers.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo::run {

[[nodiscard]] Division division_of(const PlannedStep& step, const RunOptions& options);
/// The ranks of this process; nullopt if all ranks are in one.
[[nodiscard]] std::optional<RankRange> own_ranks(const PlannedStep& step,
                                                 const RunOptions& options);
/// The transport that the options ask for, which is told what each message is and who waits for it.
[[nodiscard]] std::unique_ptr<Transport> transport_of(
    Engine& engine, const PlannedStep& step, const StepLayers& layers, const Program& program,
    const SentGradients& sent_gradients, const SentRows& sent_rows, const RunOptions& options);

/// The times of each step that was run, in microseconds; `begin` and `end` are those of the first
/// and the last task of a replay, from its beginning.
struct StepTimes {
  std::vector<double> eager;
  std::vector<double> replay;
  std::vector<double> begin;
  std::vector<double> end;
  std::vector<double> busy;
  std::vector<double> launch;
  std::vector<Beginning> beginning;
};

[[nodiscard]] std::string packed(const RunReport& report, const StepTimes& times);
/// Adds what another process packed in the same run of the same program.
void add(RunReport& report, StepTimes& times, std::string_view text);

}  // namespace capo::run
