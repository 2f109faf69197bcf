// A schedule as text in capo's own notation, and in the one that papers print.
//
//   capo 1                        an .order file, which can say everything that a schedule holds
//   microbatches 2
//   rank 0: F1 F1 B1 B1
//
//   F0 F1 B0 W0 F2 BW1            tokens, a rank a line: kind and microbatch, where BW is whole
//   F0.0 F0.1 F3.0&BW1.1          the chunk as well, from 0, where & runs two together
//
// Tokens are what the authors of zero-bubble and DualPipe schedules print. They do not say the
// placement, and have no notation for an action that computes nothing.
//
// In an .order file a line is a statement, and one that begins with a blank goes on with the one
// before it; docs/language.md has the grammar. Tested by order_reader_test.cpp,
// tests/properties/round_trip_test.cpp (printing then reading an .order file is the identity) and
// tokens_printer_test.cpp.

#pragma once

#include "core/base/result.h"
#include "core/order/inexpressible.h"
#include "core/order/schedule.h"
#include "core/text/limits.h"
#include "core/text/refusal.h"

#include <string>
#include <string_view>

namespace capo {

[[nodiscard]] Read<Schedule> read_order_file(std::string_view text, const Limits& limits);

/// Whether a text that may be in any form is an .order file: its first word is `capo`.
[[nodiscard]] bool looks_like_order_file(std::string_view text);

[[nodiscard]] std::string print_order_file(const Schedule& schedule);

[[nodiscard]] Result<std::string, Inexpressible> print_tokens(const Schedule& schedule);

}  // namespace capo
