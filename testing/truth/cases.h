// The cases of the truth campaign, each a function of the seed and its number alone, so that any
// one can be run again.
//
//   even numbers   sound: the fixed ones first (fixed_cases.h), then a published schedule, an order
//                  of one rank, a schedule of several ranks, an order that keeps to
//                  TransformerEngine's plan, modules that keep its contract and an order that its
//                  reuse of memory spares, each equally likely
//   odd numbers    at fault in something that can be run: the fixed ones first; then, one in eight,
//                  a published schedule of several ranks under TransformerEngine's plan, of which
//                  not all is declared of how they communicate; and of the others, one in two, an
//                  order of which TransformerEngine's own reuse of memory hurts somebody, but for
//                  the few where eight draws found none; one in four a fault of a plan and one in
//                  four of a module, from testing/faults
//
// An order of several ranks whose communication is not declared, sound ones included, is run under
// any of the values that it can have, each equally likely. An order that reduces gradients is run
// as two or three replicas. Granularities are drawn, sizes of groups
// are zipf in one of three and else random, and all sizes are at most 32. Faults that a run cannot
// show (explained.h) come seldom, one in sixteen of their sort. Tested by
// tests/testing/truth/cases_test.cpp.

#pragma once

#include "testing/truth/truth_case.h"

#include <cstdint>

namespace capo::testing {

[[nodiscard]] TruthCase truth_case(std::uint64_t seed, std::uint64_t number);

}  // namespace capo::testing
