// The laws that orders on a V of two chunks a rank share when their generator takes no heed of
// costs and memory.

#pragma once

#include "schedules/generators.h"
#include "tests/schedules/order_laws.h"

#include <gtest/gtest.h>

namespace capo::schedules::order_laws {

inline Setting v_of(std::int32_t ranks, std::int32_t microbatches) {
  return {.ranks = ranks, .microbatches = microbatches, .chunks = 2};
}

/// On whichever rank holds the most.
inline std::int64_t peak_of(const PublishedOrders& orders) {
  const auto held = most_held(orders);
  return *std::max_element(held.begin(), held.end());
}

using Generator = Generated (*)(const Setting&);

inline void expect_costs_and_memory_do_not_matter(Generator generator) {
  Setting other = v_of(4, 9);
  other.costs = {.forward = 10, .backward = 16, .weight = 4, .transfer = 1};
  other.memory_limit = 1;
  EXPECT_EQ(generator(v_of(4, 9)).value(), generator(other).value());
}

inline void expect_whole_and_finishing(Generator generator) {
  for (std::int32_t ranks = 1; ranks <= 9; ++ranks) {
    for (std::int32_t microbatches = 1; microbatches <= 20; ++microbatches) {
      const Setting setting = v_of(ranks, microbatches);
      EXPECT_EQ(broken_law(generator(setting).value(), wave(setting)), std::nullopt)
          << ranks << " " << microbatches;
    }
  }
}

}  // namespace capo::schedules::order_laws
