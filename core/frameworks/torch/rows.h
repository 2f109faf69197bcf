// A schedule as the rows of actions that PyTorch's functions work on.
//
// What PyTorch would have read is kept: a composite without members has stage -1 and no actions of
// its own. Idle slots stay in place, since PyTorch counts steps with them.

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
  std::vector<TorchAction> actions;  ///< none: an idle slot; a composite's members

  [[nodiscard]] bool idle() const { return actions.empty() && !composite; }
};

using Rows = std::vector<std::vector<Slot>>;

/// Of a schedule without dispatch and combine, which PyTorch has no actions for.
[[nodiscard]] Rows rows_of(const Input& input);

/// The rank of each stage below `stages` as PyTorch would be told; -1 where no rank holds it.
[[nodiscard]] std::vector<std::int64_t> rank_of_stages(const Input& input, std::int64_t stages);

/// torch's str() of a slot.
[[nodiscard]] std::string to_text(const Slot& slot);

}  // namespace capo::torch
