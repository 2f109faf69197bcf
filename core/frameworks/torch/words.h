// PyTorch's type and word for a kind of action: F, I, W, B, SEND_F, ... Under a chunk that splits
// every backward, capo's B is PyTorch's I.

#pragma once

#include "core/frameworks/torch/table.h"
#include "core/order/schedule.h"

#include <string_view>

namespace capo {

/// Not for an idle slot, a dispatch or a combine, which are no actions to PyTorch.
[[nodiscard]] TorchType torch_type(Kind kind, Delay delay);

/// Empty for what is no action to PyTorch.
[[nodiscard]] std::string_view torch_word(Kind kind, Delay delay);

}  // namespace capo
