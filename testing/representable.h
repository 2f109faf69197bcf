// Whether the .order and JSON forms can say a schedule, which is what they promise to read back.
//
// A schedule from a reader can hold more than these two forms have notation for, such as the
// nameless microbatch of the cell `0F`. The invariants, each with its reason as
// unrepresentable() gives it:
//
//   * there is a rank; an entry has a chunk from 1, an idle slot has none
//   * named: every action that has a microbatch names it, and there is at least one such action;
//     counted: the numbers are those that number_microbatches() gives, and there is no I
//   * a composite has members, none of them idle, and its first opens it
//   * chunks that are not declared are the largest id that the order is long enough to use
//   * layers: a count is one number, a list is not empty, and no number is negative
//   * a declared delay speaks of every chunk and of no other
//   * a chunk is mixed only where microbatches are named
//   * stages are those of the topology; custom ones are as many as the chunks
//   * no number is above the limit for counts
//
// Standard library and core only, since the fuzz targets use it too. Tested by
// representable_test.cpp.

#pragma once

#include "core/order/schedule.h"
#include "core/text/limits.h"

#include <optional>
#include <string_view>

namespace capo::testing {

/// Why it cannot be said; nothing if it can.
[[nodiscard]] std::optional<std::string_view> unrepresentable(const Schedule& schedule,
                                                              const Limits& limits = {});

}  // namespace capo::testing
