// Bytes of an input, made fit for a message: none of them moves the cursor, rings a bell or ends
// the line, bytes that are no UTF-8 show as their codes, and a long piece is cut between
// characters. Tested by printable_test.cpp.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace capo {

/// How many bytes the UTF-8 character at the beginning of `text` has; 0 if there is none.
[[nodiscard]] std::size_t utf8_length(std::string_view text);

/// The text with control characters and broken UTF-8 as \xNN, cut to about `longest` bytes and
/// "...".
[[nodiscard]] std::string printable(std::string_view text,
                                    std::size_t longest = std::string_view::npos);

}  // namespace capo
