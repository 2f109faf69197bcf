// What a TE list or a table leaves out of a schedule, though a verdict depends on it.
//
//   capo 1
//   microbatches 3          [1, -1] shows one microbatch, and a reader of it takes that for all
//   rank 0: F1.0 B1.0
//
// Both forms say what runs and declare nothing. What a schedule declares is left out of them where
// their reader infers something else: a number of microbatches, stages or chunks, layers, who
// delays weight gradients. A list leaves out besides that chunks are stages, and a table that they
// are none, which matters where the order is right as one and wrong as the other. Tested by
// left_out_test.cpp; that no verdict changes is a property in tests/properties/convert_test.cpp.

#pragma once

#include "core/order/inexpressible.h"
#include "core/order/input.h"

#include <optional>

namespace capo {

/// The first thing of `schedule` that is left out of `again`: the text of it that was read back, as
/// a TE list or a table, with nothing declared beside it. Nothing if they mean the same.
[[nodiscard]] std::optional<Inexpressible> left_out(const Schedule& schedule, const Input& again);

}  // namespace capo
