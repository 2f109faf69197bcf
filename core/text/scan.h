// The parts that all readers share: the bytes that a text may hold at all, and their names in
// messages. Tested by scan_test.cpp.

#pragma once

#include "core/order/schedule.h"
#include "core/text/limits.h"
#include "core/text/refusal.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace capo {

[[nodiscard]] constexpr bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
[[nodiscard]] constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
[[nodiscard]] constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// A character as a message shows it: `x`, or its code if it does not print.
[[nodiscard]] std::string shown(char c);
/// A piece of the input as a message shows it: quoted, cut to a readable length.
[[nodiscard]] std::string shown(std::string_view text);

/// Refuses a text with too many bytes, a byte order mark, a NUL, or a carriage return that ends no
/// line. nullopt if the text passes.
[[nodiscard]] std::optional<Refusal> refuse_bytes(std::string_view text, const Limits& limits);

[[nodiscard]] Refusal too_many_entries(Span span, const Limits& limits);

/// Refuses an I without its microbatch: beside whole backwards, counting cannot tell whose it is.
[[nodiscard]] Refusal unnamed_input(Span span);

/// Refuses a schedule whose chunks in all, or whose stages, are more than the limit for counts. A
/// schedule may declare far more than it holds, and nothing is to be allocated for a number alone.
[[nodiscard]] std::optional<Refusal> refuse_size(const Schedule& schedule, const Limits& limits);

}  // namespace capo
