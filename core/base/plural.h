// Numbers with their nouns, lists of words, and words on lines: "1 chunk", "2 entries", "te, mcore
// and torch".
//
// The plural is the noun with an s unless the caller gives it: English rules are not guessed.
// Tested by plural_test.cpp.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace capo {

/// The noun alone: "chunk" if `number` is 1, else `many`, or "chunks" if `many` is empty.
[[nodiscard]] std::string plural(std::int64_t number, std::string_view noun,
                                 std::string_view many = {});

/// The number and the noun: "1 chunk", "0 chunks", "2 entries".
[[nodiscard]] std::string counted(std::int64_t number, std::string_view noun,
                                  std::string_view many = {});

/// The numbers of `count` things that are counted from 0: "0 to 3", "only 0".
[[nodiscard]] std::string numbered(std::int64_t count);

/// Two words or more as a sentence lists them: "text, json and sarif".
[[nodiscard]] std::string listed(std::span<const std::string_view> words);

/// Lines of whole words, one at least, none longer than `most` bytes unless a word is.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, std::size_t most);

}  // namespace capo
