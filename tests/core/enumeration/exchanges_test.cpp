// Product against oracle on every place that exchanges of tokens can have: all orders of one
// microbatch among whose F and B stand up to five exchanges of its forward and backward.

#include "testing/oracle/exchanges.h"
#include "tests/core/enumeration/moves_among.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <vector>

namespace capo {
namespace {

using oracle::OfTokens;
using testing_support::Compared;
using testing_support::places_found;

// Whether an exchange is a dispatch or a combine makes no difference, so they alternate.
Kind kind_of(OfTokens step, std::size_t at) {
  const bool dispatch = at % 2 == 0;
  switch (step) {
    case OfTokens::Forward:
      return Kind::Forward;
    case OfTokens::Backward:
      return Kind::Backward;
    case OfTokens::OfForward:
      return dispatch ? Kind::DispatchForward : Kind::CombineForward;
    case OfTokens::OfBackward:
      break;
  }
  return dispatch ? Kind::DispatchBackward : Kind::CombineBackward;
}

std::vector<Entry> order_of(const std::vector<OfTokens>& steps) {
  std::vector<Entry> order;
  for (std::size_t at = 0; at < steps.size(); ++at)
    order.push_back({.chunk = 1, .microbatch = 0, .kind = kind_of(steps[at], at)});
  return order;
}

TEST(ExchangeOrders, HaveTheFindingsOfTheOracle) {
  Compared all;
  testing_support::for_every_order<OfTokens>(
      {OfTokens::Forward, OfTokens::Backward}, {OfTokens::OfForward, OfTokens::OfBackward}, 5,
      [&](const std::vector<OfTokens>& steps) {
        all.compare(places_found(order_of(steps), "D06"), oracle::exchanged_out_of_place(steps));
      });
  // A term for each number of exchanges, of two sorts each, in any places among two computations.
  EXPECT_EQ(all.orders, 1U + 3 * 2 + 6 * 4 + 10 * 8 + 15 * 16 + 21 * 32);
  std::printf("%zu orders, %zu of them sound\n", all.orders, all.sound);
}

}  // namespace
}  // namespace capo
