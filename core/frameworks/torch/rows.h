// A schedule as the rows of actions that PyTorch's functions work on.
//
// A row keeps what PyTorch would have read: a composite without members has stage -1 and no actions
// of its own. Idle slots stay in place, since PyTorch counts steps with them. Tested by
// predict_test.cpp.

#pragma once

#include "core/frameworks/torch/table.h"
#include "core/order/input.h"

#include <cstdint>
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

}  // namespace capo::torch
