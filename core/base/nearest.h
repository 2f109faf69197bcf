// "did you mean": the known word that takes the fewest edits from what was written.
// Tested by nearest_test.cpp.

#pragma once

#include <span>
#include <string_view>

namespace capo {

/// Insertions, deletions, replacements and swaps of neighbours between two words.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The nearest of `known` within a third of the word's length, at least one edit; else empty.
[[nodiscard]] std::string_view nearest(std::string_view word,
                                       std::span<const std::string_view> known);

}  // namespace capo
