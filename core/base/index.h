// Counts, positions and enumerators as containers index them.
//
// Model and texts count in signed types: a difference of two counts may be negative, and Python's
// integers are signed. A container's index is not. as_index() is the one way across: it asserts
// that nothing negative comes through, where a bare cast would turn -1 into 18446744073709551615.
//
//   forwards[as_index(chunk)]
//
// Ids have index() of their own, since they know whether they count from 0 or 1. A value that has
// been read from a device or a file and could be negative is checked by its reader first. Tested by
// index_test.cpp.

#pragma once

#include "core/base/assert.h"

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace capo {

template <std::signed_integral Count>
[[nodiscard]] constexpr std::size_t as_index(Count count) {
  CAPO_ASSERT(count >= 0, "counts and positions are not negative");
  return static_cast<std::size_t>(count);
}

/// The position of an enumerator in a table that has a row for each; the first has the value 0.
template <typename Enumerator>
requires std::is_enum_v<Enumerator>
[[nodiscard]] constexpr std::size_t as_index(Enumerator enumerator) {
  return static_cast<std::size_t>(enumerator);
}

}  // namespace capo
