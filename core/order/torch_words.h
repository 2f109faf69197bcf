// PyTorch's word for a kind of action: F, I, W, B, SEND_F, ... Under a chunk that splits every
// backward, capo's B is PyTorch's I.

#pragma once

#include <capo/core/order/schedule.h>

#include <string_view>

namespace capo {

/// Empty for an idle slot.
[[nodiscard]] std::string_view torch_word(Kind kind, Delay delay);

}  // namespace capo
