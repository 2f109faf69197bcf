// capo::testing for GoogleTest: laws as assertions, and orders printed as .order text where a test
// fails.
//
//   EXPECT_TRUE(holds(laws::is_accepted(order)));
//
//   RC_GTEST_PROP(MyOrders, AreAccepted, ()) { require(laws::is_accepted(*my_orders())); }
//
// A target of its own, capo::testing_gtest. Tested by tests/testing/gtest/holds_test.cpp.

#pragma once

#include "core/order/schedule.h"
#include "testing/generators/arbitrary_schedule.h"
#include "testing/laws/law.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <ostream>

namespace capo {

/// For GoogleTest, which finds it beside Schedule.
inline void PrintTo(const Schedule& schedule, std::ostream* out) {
  showValue(schedule, *out);
}

namespace testing {

[[nodiscard]] inline ::testing::AssertionResult holds(const Breach& breach) {
  if (!breach) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << *breach;
}

}  // namespace testing
}  // namespace capo
