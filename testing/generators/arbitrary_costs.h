// Times of tasks and links, the same everywhere or not.
//
//   --cost f=12,b=13,w=9,comm=1 --cost r1:f=14
//
// Distribution: whole numbers, in each range equally likely. f, b and w are 1 to 20, w in one of
// four costs 0; links have a latency of 0 to 5 in one of two, and in one of three of these messages
// of 1 to 8 bytes at 1 to 4 bytes a unit of time. One in three costs has one to three settings for
// a rank from 0 to 3, a chunk from 1 to 3, or both, each of f, b or w (equally likely) and from 1
// to 20; of two for the same the second counts. Overlap is 0.5 to 1 in tenths in one of four, else
// 1; slowdown 1.
//
// Shrinking: the overlap becomes 1; away goes a setting, the last first. Tested by
// arbitrary_costs_test.cpp.

#pragma once

#include "sim/costs.h"
#include "testing/generators/dice.h"

#include <iosfwd>

namespace capo {

/// Prints flags to paste for rapidcheck.
void showValue(const Costs& costs, std::ostream& out);

namespace testing {

[[nodiscard]] Costs draw_arbitrary_costs(Dice& dice);
[[nodiscard]] rc::Gen<Costs> arbitrary_costs();

}  // namespace testing
}  // namespace capo
