// A schedule as the text of any form, or the reason why the form cannot say it.
//
//   capo 1
//   microbatches 3          [1, -1] shows one microbatch, and a reader of it takes that for all
//   rank 0: F1.0 B1.0
//
// The text is read again, with nothing declared beside it: it must be readable, and mean the same
// as far as a verdict goes. A TE list and a table say what runs and declare nothing, so a
// declaration is lost if their reader infers something else: a number of microbatches, stages or
// chunks, layers, which chunks delay weight gradients. A list does not say either that chunks are
// stages, nor a table that they are none, which matters if the order is right as one and wrong as
// the other. Tested by written_test.cpp, left_out_test.cpp and tests/cli/convert_test.cpp; a
// property in tests/properties/convert_test.cpp says that no verdict changes.

#pragma once

#include "core/base/result.h"
#include "core/input/load.h"
#include "core/order/inexpressible.h"
#include "core/order/input.h"
#include "core/order/schedule.h"
#include "core/text/limits.h"

#include <optional>
#include <string>

namespace capo {

/// `limits` are those of a reader of the text, but for its bytes. Under Beside::Drop the text may
/// say less than the schedule: a TE list and a table then leave out what they have no notation for.
[[nodiscard]] Result<std::string, Inexpressible> written(const Schedule& schedule, TextForm form,
                                                         Beside beside = Beside::Refuse,
                                                         const Limits& limits = {});

/// The first thing of `schedule` that is left out of `again`: its text as a TE list or a table,
/// read back with nothing declared beside it. nullopt if the two mean the same.
[[nodiscard]] std::optional<Inexpressible> left_out(const Schedule& schedule, const Input& again);

}  // namespace capo
