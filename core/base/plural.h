// A number with its noun: "1 chunk", "3 chunks", "2 entries".
//
// The plural is the noun with an s unless the caller gives it: English rules are not guessed.
// Tested by plural_test.cpp.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace capo {

/// The noun alone: "chunk" if `number` is 1, else `many`, or "chunks" if `many` is empty.
[[nodiscard]] std::string plural(std::int64_t number, std::string_view noun,
                                 std::string_view many = {});

/// The number and the noun: "1 chunk", "0 chunks", "2 entries".
[[nodiscard]] std::string counted(std::int64_t number, std::string_view noun,
                                  std::string_view many = {});

}  // namespace capo
