// Product against oracle on every way to gather a chunk's parameters and give them up: all orders
// of one chunk whose F, B and W stand among up to five unshards and reshards.

#include "testing/oracle/parameters.h"
#include "tests/core/enumeration/moves_among.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <vector>

namespace capo {
namespace {

using oracle::OfParameters;
using testing_support::Compared;
using testing_support::places_found;

std::vector<Entry> order_of(const std::vector<OfParameters>& steps) {
  constexpr std::array kComputations{Kind::Forward, Kind::Backward, Kind::BackwardWeight};
  std::vector<Entry> order;
  std::size_t computed = 0;
  for (const OfParameters step : steps) {
    Entry entry{.chunk = 1};
    switch (step) {
      case OfParameters::Compute:
        entry.kind = kComputations.at(computed++);
        entry.microbatch = 0;
        break;
      case OfParameters::Gather:
        entry.kind = Kind::Unshard;
        break;
      case OfParameters::GiveUp:
        entry.kind = Kind::Reshard;
        break;
    }
    order.push_back(entry);
  }
  return order;
}

TEST(ParameterOrders, HaveTheFindingsOfTheOracle) {
  Compared all;
  testing_support::for_every_order<OfParameters>(
      {OfParameters::Compute, OfParameters::Compute, OfParameters::Compute},
      {OfParameters::Gather, OfParameters::GiveUp}, 5, [&](const std::vector<OfParameters>& steps) {
        all.compare(places_found(order_of(steps), "D05"), oracle::without_parameters(steps));
      });
  // A term for each number of moves, of two kinds each, in any places among three computations.
  EXPECT_EQ(all.orders, 1U + 4 * 2 + 10 * 4 + 20 * 8 + 35 * 16 + 56 * 32);
  std::printf("%zu orders, %zu of them sound\n", all.orders, all.sound);
}

}  // namespace
}  // namespace capo
