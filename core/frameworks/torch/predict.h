// predict() answers a schedule as torch.distributed.pipelining would: its validator, its lowering,
// and its simulator, message for message.
//
//   0F0,0B0 | 1F0,1B0   ->   validate ok, lower ok, simulate ok
//
// The validator scans each rank's list by itself and counts distinct microbatches per stage. It
// does not look at the order across ranks, at repeated actions, at which microbatches there are,
// nor at any transfer. A compute-only table is then lowered (lower.cpp), and the lowered table
// simulated (simulate.cpp); a table with transfers is simulated as it is. Tested by
// predict_test.cpp against torch's own verdicts.

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

  [[nodiscard]] bool idle() const { return actions.empty() && !composite; }
};

using Rows = std::vector<std::vector<Slot>>;

/// The rows of a schedule that has no dispatch and combine, for which PyTorch has no actions.
[[nodiscard]] Rows rows_of(const Input& input);

/// The rank of each stage below `stages` as PyTorch would be told; -1 where no rank holds it.
[[nodiscard]] std::vector<std::int64_t> rank_of_stages(const Input& input, std::int64_t stages);

/// torch's str() of a slot.
[[nodiscard]] std::string to_text(const Slot& slot);

/// Each step is "ok" or the first line of what torch raises: "AssertionError: Rank 1, step 20:
/// ...".
struct Predicted {
  std::string validate;
  std::optional<std::string> lower;     ///< nullopt for a table that holds its transfers already
  std::optional<std::string> simulate;  ///< nullopt if lowering failed
};

/// A compute-only table with its transfers. add_send_receive() of version.h makes it from rows
/// whose idle slots and REDUCE_GRAD it leaves out, as PyTorch's runtime does first.
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

}  // namespace capo::torch
