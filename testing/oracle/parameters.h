// The second opinion on parameters: whether a chunk has them when it computes.
//
//   Gather Compute GiveUp Compute     the last one has not
//
// Every step is looked at by itself: what the nearest move before it did is how things are; with
// none before it, the nearest behind it says how they were at the beginning. It shares no code with
// the product and includes only the standard library. Tested by
// tests/testing/oracle/parameters_test.cpp; that the product agrees is enumerated in
// tests/core/enumeration/parameters_test.cpp and a property in
// tests/properties/parameters_test.cpp.

#pragma once

#include <cstddef>
#include <vector>

namespace capo::oracle {

enum class OfParameters { Compute, Gather, GiveUp };

/// The steps of one chunk that find its parameters otherwise than they need them: of those between
/// two moves, or from one move to the next, the first.
[[nodiscard]] std::vector<std::size_t> without_parameters(const std::vector<OfParameters>& steps);

}  // namespace capo::oracle
