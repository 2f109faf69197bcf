// PyTorch has a type and a word for each kind of action: F, I, W, B, SEND_F, ... If a chunk splits
// every backward, capo's B is PyTorch's I. Tested by csv_reader_test.cpp.

#pragma once

#include "core/frameworks/torch/table.h"
#include "core/order/schedule.h"

#include <string_view>

namespace capo {

/// The kind is no idle slot, dispatch or combine, which are no actions to PyTorch.
[[nodiscard]] TorchType torch_type(Kind kind, Delay delay);

/// Empty if the kind is no action to PyTorch.
[[nodiscard]] std::string_view torch_word(Kind kind, Delay delay);

}  // namespace capo
