// Two inputs as one schedule: the order that was captured and the one that is replayed.
//
//   capo check --capture captured.te --replay replayed.te
//
// The declarations of the first (chunks, layers, stages) hold; the second gives its entries, which
// keep their places in their own text. If both list the stages of each rank, as tables do, two
// chunks are the same if their stages are. Tested by with_replay_test.cpp.

#pragma once

#include "core/base/result.h"
#include "core/order/input.h"

#include <string>

namespace capo {

/// The capture with the replay's orders beside its own, or the reason why the two are not of one
/// schedule.
[[nodiscard]] Result<Input, std::string> with_replay(Input capture, const Input& replay);

}  // namespace capo
