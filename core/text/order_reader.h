// Reads capo's own .order text as a schedule.
//
//   capo 1
//   microbatches 2
//   placement loop
//   rank 0: F1 F1 B1 B1
//   rank 1: F1 B1 F1 B1
//
// A line is a statement; a line that begins with a blank goes on with the one before it.
// docs/language.md has the grammar. Tested by order_reader_test.cpp.

#pragma once

#include "core/order/schedule.h"
#include "core/text/limits.h"
#include "core/text/refusal.h"

#include <string_view>

namespace capo {

[[nodiscard]] Read<Schedule> read_order_file(std::string_view text, const Limits& limits);

/// Whether a text that may be in any form is an .order file: its first word is `capo`.
[[nodiscard]] bool looks_like_order_file(std::string_view text);

}  // namespace capo
