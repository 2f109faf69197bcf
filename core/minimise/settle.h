// Puts a schedule that was cut in order again: everything that a reader would infer from its text.
//
//   F1 F1 B1 B1  without its first F1   ->   F1.0 B1.0 B1.1: counted anew
//
// A schedule that loses entries, chunks or ranks must stay one that .order text can say, or the
// text would mean something else than what was checked. Tested by deletions_test.cpp: printing a
// settled schedule and reading it gives it back.

#pragma once

#include "core/order/schedule.h"

#include <functional>
#include <vector>

namespace capo {

/// Numbers counted microbatches, infers undeclared chunks, and places stages by their topology.
/// Entries lose their spans, since their text is gone.
void settle(Schedule& schedule);

/// Removes entries. A composite stays one while it has two members.
void erase_entries(std::vector<Entry>& order, const std::function<bool(const Entry&)>& goes);

}  // namespace capo
