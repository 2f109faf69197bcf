// Copies of an order that train on data of their own, as one order: what a data-parallel group of
// pipelines runs.
//
//   rank 0: F1.0 B1.0 reduce1     with two replicas, ranks 2 and 3 do what 0 and 1 do:
//   rank 1: F1.0 B1.0 reduce1     ranks 0 and 2 reduce together, and ranks 1 and 3
//
// Rank r of replica k is rank k * R + r of the whole, where an order has R ranks. A group that
// performs `reduce`, dispatch or combine has the members of every replica, since the ranks of
// experts are data-parallel ones; each other group is one of each replica; a rank that no group has
// reduce makes a group with its copies. So what is judged, planned and run is an order like any
// other, with reductions that meet. Tested by tests/run/setup/replicas_test.cpp and
// tests/run/steps/reductions_test.cpp.

#pragma once

#include "core/base/result.h"
#include "core/order/input.h"
#include "core/rules/check_options.h"

#include <cstdint>
#include <string>

namespace capo::run {

struct Replicas {
  Input input;
  CheckOptions options;
};

/// An error says why there can be no copies of the order. `count` is from 1; one copy is the order
/// itself.
[[nodiscard]] Result<Replicas, std::string> replicas_of(Input input, CheckOptions options,
                                                        std::int32_t count);

}  // namespace capo::run
