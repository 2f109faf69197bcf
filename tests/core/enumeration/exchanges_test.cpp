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

Kind kind_of(OfTokens step) {
  switch (step) {
    case OfTokens::Forward:
      return Kind::Forward;
    case OfTokens::Backward:
      return Kind::Backward;
    case OfTokens::DispatchForward:
      return Kind::DispatchForward;
    case OfTokens::CombineForward:
      return Kind::CombineForward;
    case OfTokens::DispatchBackward:
      return Kind::DispatchBackward;
    case OfTokens::CombineBackward:
      break;
  }
  return Kind::CombineBackward;
}

std::vector<Entry> order_of(const std::vector<OfTokens>& steps) {
  std::vector<Entry> order;
  for (const OfTokens step : steps)
    order.push_back({.chunk = 1, .microbatch = 0, .kind = kind_of(step)});
  return order;
}

TEST(ExchangeOrders, HaveTheFindingsOfTheOracle) {
  Compared all;
  testing_support::for_every_order<OfTokens>(
      {OfTokens::Forward, OfTokens::Backward},
      {OfTokens::DispatchForward, OfTokens::CombineForward, OfTokens::DispatchBackward,
       OfTokens::CombineBackward},
      5, [&](const std::vector<OfTokens>& steps) {
        all.compare(places_found(order_of(steps), "D06"), oracle::exchanged_out_of_place(steps));
      });
  // A term for each number of exchanges, of four sorts each, in any places among two computations.
  EXPECT_EQ(all.orders, 1U + 3 * 4 + 6 * 16 + 10 * 64 + 15 * 256 + 21 * 1024);
  std::printf("%zu orders, %zu of them sound\n", all.orders, all.sound);
}

}  // namespace
}  // namespace capo
