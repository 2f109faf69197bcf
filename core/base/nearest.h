// "did you mean": the known word that takes the fewest edits from what was written.
//
//   did_you_mean("chunk", keys, "docs/cli.md lists the keys")   "did you mean `chunks`?"
//
// Tested by nearest_test.cpp.

#pragma once

#include <span>
#include <string>
#include <string_view>

namespace capo {

/// The number of insertions, deletions, replacements and swaps of neighbours between two words.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The nearest of `known` within a third of the word's length, but at least within one edit,
/// capital letters or small; if none is as near, the first that begins as a word of five letters or
/// more does (`deepseek` of `deepseek-v3`); else empty.
[[nodiscard]] std::string_view nearest(std::string_view word,
                                       std::span<const std::string_view> known);

/// "did you mean `chunks`?", or `otherwise` if no known word is near.
[[nodiscard]] std::string did_you_mean(std::string_view word,
                                       std::span<const std::string_view> known,
                                       std::string_view otherwise = {});

}  // namespace capo
