// captured() is the schedule that TE captures from a list, which need not be the one that the list
// says: every entry belongs to the graph whose index TE gives it.
//
//   [1, 2, -1, -1]     the second -1 captures the backward of chunk 2
//
// TE never counts by chunk: an entry beyond a chunk's microbatches goes to the next chunk's graphs,
// and a weight gradient to the latest backward of its chunk. So capo can tell which memory a replay
// would overwrite even for a list that TE accepts and capo rejects. Every chunk has one layer. One
// difference is left: at a surplus backward TE may have no input to free, and this schedule frees
// that of the graph that it hits.
//
// Tested by tests/core/profiles/te_captured_test.cpp.

#pragma once

#include "core/order/input.h"

#include <optional>

namespace capo::te {

/// The input with each entry as TE captures it, its microbatches named; nullopt if TE, with its
/// buffers reused, does not take the list.
[[nodiscard]] std::optional<Input> captured(const Input& input);

}  // namespace capo::te
