// Product against oracle on every place that exchanges of tokens can have: all orders of one
// microbatch among whose F and B stand up to five exchanges of its forward and backward.

#include "testing/oracle/exchanges.h"
#include "core/rules/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace capo {
namespace {

using oracle::OfTokens;
using Places = std::vector<std::size_t>;

Kind kind_of(OfTokens step, std::size_t at) {
  const bool dispatch = at % 2 == 0;  // which of the two makes no difference
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

Places found_in(const std::vector<OfTokens>& steps) {
  Input input;
  input.schedule = {.naming = Naming::Named, .microbatches = 1, .ranks = {RankOrder{.chunks = 1}}};
  for (std::size_t at = 0; at < steps.size(); ++at)
    input.schedule.ranks[0].order.push_back(
        {.chunk = 1, .microbatch = 0, .kind = kind_of(steps[at], at)});
  const CheckResult result = check(input);
  Places places;
  for (const Diagnostic& finding : result.diagnostics.kept()) {
    EXPECT_EQ(finding.rule, "D06");
    places.push_back(finding.witness.tasks.front().index);
  }
  std::sort(places.begin(), places.end());  // the entries have no places to be sorted by
  return places;
}

TEST(ExchangeOrders, HaveTheFindingsOfTheOracle) {
  constexpr std::size_t kExchanges = 5;
  std::size_t orders = 0;
  std::size_t sound = 0;
  std::vector<OfTokens> steps;
  const auto extend = [&](auto&& self, std::size_t computations, std::size_t exchanges) -> void {
    if (computations == 2) {
      const Places expected = oracle::exchanged_out_of_place(steps);
      ASSERT_EQ(found_in(steps), expected) << "order " << orders;
      ++orders;
      sound += expected.empty() ? 1 : 0;
    }
    const auto with = [&](OfTokens step, std::size_t c, std::size_t e) {
      steps.push_back(step);
      self(self, c, e);
      steps.pop_back();
    };
    if (computations < 2)
      with(computations == 0 ? OfTokens::Forward : OfTokens::Backward, computations + 1, exchanges);
    if (exchanges == kExchanges) return;
    with(OfTokens::OfForward, computations, exchanges + 1);
    with(OfTokens::OfBackward, computations, exchanges + 1);
  };
  extend(extend, 0, 0);
  // Of e exchanges, two sorts each, in any places among the two computations.
  EXPECT_EQ(orders, 1U + 3 * 2 + 6 * 4 + 10 * 8 + 15 * 16 + 21 * 32);
  std::printf("%zu orders, %zu of them sound\n", orders, sound);
}

}  // namespace
}  // namespace capo
