// Numbers with their nouns, and lists of words: "1 chunk", "2 entries", "te, mcore and torch".
//
// The plural is the noun with an s unless the caller gives it: English rules are not guessed.
// Tested by plural_test.cpp.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace capo {

/// The noun alone: "chunk" if `number` is 1, else `many`, or "chunks" if `many` is empty.
[[nodiscard]] std::string plural(std::int64_t number, std::string_view noun,
                                 std::string_view many = {});

/// The number and the noun: "1 chunk", "0 chunks", "2 entries".
[[nodiscard]] std::string counted(std::int64_t number, std::string_view noun,
                                  std::string_view many = {});

/// Two words or more as a sentence lists them: "text, json and sarif".
[[nodiscard]] std::string listed(std::span<const std::string_view> words);

}  // namespace capo
