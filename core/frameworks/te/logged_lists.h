// Lists that stand in lines of a log, which processes write in any order: a line's place says
// nothing about its rank if the line names one.
//
//   [rank1]: _order=[1, -1]
//   [rank0]: _order=[1, 1, -1, -1]     these are ranks 0 and 1, the second line first
//   Rank 8: ORDER [1, -1]              as Megatron-LM logs it
//
// Megatron-LM logs one rank of each stage of the pipeline by its number among all, so that its
// ranks are 0, n, 2n and so on; and where the overlap of expert parallelism cuts chunks into
// layers, a second line, whose list is the one that is captured.
//
// list_text.cpp finds and reads the lists. Tested by printed_lists_test.cpp.

#pragma once

#include "core/text/refusal.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace capo {

/// The words before the lists that Megatron-LM captures, up to the bracket; empty if there are
/// none behind `from`.
[[nodiscard]] std::string_view megatron_words(std::string_view text, std::size_t from);

/// Returns the place at which the next list begins behind such words that stand in no comment; the
/// end of the text if there is none.
[[nodiscard]] std::size_t list_behind(std::string_view words, std::string_view text,
                                      std::size_t from);

/// A list that stands in a line of a log.
struct LoggedList {
  std::optional<std::uint32_t> rank;  ///< nullopt: the line names none
  Span place;                         ///< of the rank's number, or where the line begins
  std::size_t begin = 0;              ///< its first entry among those of all lists
};

/// Reads what a line says in front of its list; `offset` is where the line begins in the text.
[[nodiscard]] LoggedList logged_list(std::string_view prefix, std::size_t offset);

enum class Numbered { OneByOne, ByStages };

/// Two lists or more in the order of their ranks, 0 and up; in the order of their lines if none
/// names its rank. Refuses lists of which only some do, and ranks that are missing or occur twice.
[[nodiscard]] Read<std::vector<std::size_t>> order_of_ranks(const std::vector<LoggedList>& lists,
                                                            Numbered numbered);

}  // namespace capo
