// The ranks that lines of a log are of. Processes write their lines in any order, so a line's place
// in the log says nothing about its rank if the line names one:
//
//   [rank1]: _order=[1, -1]
//   [rank0]: _order=[1, 1, -1, -1]     these are ranks 0 and 1, the second line first
//
// Tested by printed_lists_test.cpp.

#pragma once

#include "core/diag/span.h"
#include "core/text/refusal.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace capo {

/// A list that stands in a line of a log.
struct LoggedList {
  std::optional<std::uint32_t> rank;  ///< nullopt: the line names none
  Span place;                         ///< of the rank's number, or where the line begins
  std::size_t begin = 0;              ///< its first entry among those of all lists
};

/// Reads what a line says in front of its list; `offset` is where the line begins in the text.
[[nodiscard]] LoggedList logged_list(std::string_view prefix, std::size_t offset);

/// The lists in the order of their ranks, 0 and up; in the order of their lines if none names its
/// rank. Refuses lists of which only some do, and ranks that are missing or occur twice.
[[nodiscard]] Read<std::vector<std::size_t>> order_of_ranks(const std::vector<LoggedList>& lists);

}  // namespace capo
