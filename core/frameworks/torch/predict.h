// predict() answers a schedule as torch.distributed.pipelining would: its validator, its lowering,
// and its simulator, message for message.
//
//   0F0,0B0 | 1F0,1B0   ->   validate ok, lower ok, simulate ok
//
// The validator scans each rank's list by itself and counts distinct microbatches per stage. It
// does not look at the order across ranks, at repeated actions, at which microbatches there are,
// nor at any transfer. A compute-only table is then lowered (lower.cpp), and the lowered table
// simulated (simulate.cpp); a table with transfers has its waits checked, from torch 2.15 on, and
// is simulated as it is. Tested by predict_test.cpp against torch's own verdicts.

#pragma once

#include "core/frameworks/torch/table.h"
#include "core/order/input.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace capo::torch {

/// One slot of a rank's list.
struct Slot {
  bool composite = false;
  std::vector<TorchAction> actions;  ///< empty: an idle slot, or a composite without members
  TorchType container = TorchType::Overlap;  ///< read only of a composite

  [[nodiscard]] bool idle() const { return actions.empty() && !composite; }
  /// The action that torch has in the list: a composite's has the stage -1 and no microbatch.
  /// Precondition: the slot is not idle.
  [[nodiscard]] TorchAction head() const {
    return composite ? TorchAction{.type = container} : actions.front();
  }
  /// Calls visit(TorchAction) for each member of a composite that has members, else for the head;
  /// an idle slot has none.
  template <typename Visit>
  void for_each_part(Visit visit) const {
    if (idle()) return;
    if (actions.empty()) return visit(head());
    for (const TorchAction& action : actions) visit(action);
  }
};

using Rows = std::vector<std::vector<Slot>>;

/// The rows of a schedule that has no dispatch and combine, for which PyTorch has no actions. A
/// word that the version does not know is what it reads in its place: to 2.11 0WAIT_SEND_F0 is 0W.
[[nodiscard]] Rows rows_of(const Input& input, const Version& version = kNewest);

/// The number of stages: as declared, or up to the highest that a rank holds.
[[nodiscard]] std::int64_t stages_of(const Input& input);

/// The rank of each stage below `stages` as PyTorch would be told; -1 where no rank holds it.
[[nodiscard]] std::vector<std::int64_t> rank_of_stages(const Input& input, std::int64_t stages);

/// torch's str() of a slot.
[[nodiscard]] std::string to_text(const Slot& slot);

/// Each step is "ok" or the first line of what torch raises: "AssertionError: Rank 1, step 20:
/// ...".
struct Predicted {
  std::string validate;
  /// For a table that holds its transfers already: what is said of its waits; nullopt if the
  /// version does not look at them.
  std::optional<std::string> lower;
  std::optional<std::string> simulate;  ///< nullopt if lowering failed
};

/// The rows without the reductions and their waits, which only the tables of torch's single-stage
/// classes hold, and those classes lower nothing.
[[nodiscard]] Rows without_reductions(Rows rows);

/// A table with its transfers, or why torch makes none.
struct Lowered {
  Rows rows;
  std::string error;  ///< the first line of what torch raises; empty if it lowers
};

struct Simulated {
  std::string error;       ///< the first line of what torch raises; empty if it ends
  std::size_t length = 0;  ///< steps of the longest rank
  std::vector<std::vector<std::size_t>> steps;  ///< by rank, the step of each action
};

[[nodiscard]] Simulated simulate(const Rows& rows, const std::vector<std::int64_t>& rank_of_stage);

[[nodiscard]] std::string validate(const Rows& rows, std::int64_t stages,
                                   std::int64_t microbatches);

[[nodiscard]] Predicted predict(const Input& input, std::int64_t stages, std::int64_t microbatches,
                                const Version& version = kNewest);

/// The activation slots of torch 2.15's `analyze_pipeline_activation_liveness`: how many
/// activations of a rank live at once, each from its forward to its whole backward or its weight
/// gradient; 2 of 0F0,0F1,0B0,0F2,0B1,0B2. Both ends count, so that what ends and what begins in
/// one composite have a slot each. torch gives slots out by greedy colouring, which takes as few as
/// there are lives at once. nullopt if torch raises: a stage of the row lacks the forward or the
/// release of a microbatch, has it twice, or has it in the wrong order. Tested by passes_test.cpp.
[[nodiscard]] std::optional<std::int64_t> activation_slots(const std::vector<Slot>& row,
                                                           std::int64_t microbatches);

}  // namespace capo::torch
