// A list as the oracle captures it, and the first that reads what is not its own as an answer.

#pragma once

#include "core/model/plan_options.h"
#include "testing/oracle/memory.h"
#include "tests/exhaustive/answer.h"
#include "tests/exhaustive/orders.h"

#include <vector>

namespace capo::exhaustive {

[[nodiscard]] std::vector<oracle::Capture::Entry> entries_of(const List& list);
/// Assumes these keys for each chunk's one layer.
[[nodiscard]] oracle::Capture capture_of(const List& list,
                                         const std::vector<oracle::LayerKeys>& chunks, bool chain);

/// The one at the earlier place; at one place, by the rule. What is accepted is later than all.
[[nodiscard]] Answer earlier(const Answer& a, const Answer& b);

/// The misreads of entries that read a buffer itself.
[[nodiscard]] Answer first_misread(const oracle::Replay& replay, const Aliases& aliases);

}  // namespace capo::exhaustive
