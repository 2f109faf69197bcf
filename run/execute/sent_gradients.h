// The gradients that a reduction sums, on their way between processes.
//
//   process 0, rank 0:  sends its gradients, receives those of rank 1     both add rank 1's to
//   process 1, rank 1:  sends its gradients, receives those of rank 0     rank 0's, as one would
//
// Every process executes the whole step eagerly, so it has memory for the gradients of all ranks,
// and a replay of its own ranks leaves that of the others unused. A member's gradients go there, in
// each other process that has members, and each process adds up what one process would, in the same
// order. So no sum travels, no process is first, and the bits are the same everywhere. A rank's
// gradients go to a process once, to its first member, however many it has.
//
// Messages of reductions have a communicator of their own. Two ranks reduce in one group at most,
// and number what they send each other in the order of their reductions. Tested by
// tests/run/processes/reductions_apart_test.cpp and tests/cli/mpi_reductions_test.cpp.

#pragma once

#include "run/execute/program.h"
#include "run/execute/rank_range.h"
#include "run/execute/step_outputs.h"
#include "run/execute/transport.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace capo::run {

/// A part of one parameter's gradient of one rank.
struct SentGradient {
  Message message;
  std::byte* gradient = nullptr;  ///< where this process has it
  std::optional<End> end;         ///< that is in this process; nullopt: none
};
/// A list for each reduction of a program; none if all ranks are in one process. All processes
/// know all.
using SentGradients = std::vector<std::vector<SentGradient>>;

/// The replayed step that is divided over processes.
struct DividedStep {
  const Program& program;
  const StepLayers& layers;
  const BufferTable& table;
  const Deposits& deposits;
  const StepOutputs& outputs;
  Division division;
  RankRange own;
};
[[nodiscard]] SentGradients gradients_between(const DividedStep& step);

/// The gradients that a reduction sums of these parameters: main_grad, what autograd was given or,
/// of one that is not fused, .grad.
[[nodiscard]] std::vector<const GroupedTensor*> gradients_to_sum(
    const StepLayers& layers, const Deposits& deposits, const StepOutputs& outputs,
    const std::vector<std::uint32_t>& of_ranks);

}  // namespace capo::run
