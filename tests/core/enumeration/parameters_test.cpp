// Product against oracle on every way to gather a chunk's parameters and give them up: all orders
// of one chunk whose F, B and W stand among up to five unshards and reshards.

#include "testing/oracle/parameters.h"
#include "core/rules/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

namespace capo {
namespace {

using oracle::OfParameters;
using Places = std::vector<std::size_t>;

constexpr std::array kComputations{Kind::Forward, Kind::Backward, Kind::BackwardWeight};

Schedule order_of(const std::vector<OfParameters>& steps) {
  Schedule schedule{.naming = Naming::Named, .microbatches = 1, .ranks = {RankOrder{.chunks = 1}}};
  std::size_t computed = 0;
  for (const OfParameters step : steps) {
    Entry entry{.chunk = 1};
    switch (step) {
      case OfParameters::Compute:
        entry.kind = kComputations[computed++];
        entry.microbatch = 0;
        break;
      case OfParameters::Gather:
        entry.kind = Kind::Unshard;
        break;
      case OfParameters::GiveUp:
        entry.kind = Kind::Reshard;
        break;
    }
    schedule.ranks[0].order.push_back(entry);
  }
  return schedule;
}

Places found_in(const std::vector<OfParameters>& steps) {
  Input input;
  input.schedule = order_of(steps);
  const CheckResult result = check(input);
  Places places;
  for (const Diagnostic& finding : result.diagnostics.kept()) {
    EXPECT_EQ(finding.rule, "D05");
    places.push_back(finding.witness.tasks.front().index);
  }
  std::sort(places.begin(), places.end());  // the entries have no places to be sorted by
  return places;
}

TEST(ParameterOrders, HaveTheFindingsOfTheOracle) {
  constexpr std::size_t kMoves = 5;
  std::size_t orders = 0;
  std::size_t sound = 0;
  std::vector<OfParameters> steps;
  const auto extend = [&](auto&& self, std::size_t computations, std::size_t moves) -> void {
    if (computations == kComputations.size()) {
      const Places expected = oracle::without_parameters(steps);
      ASSERT_EQ(found_in(steps), expected) << "order " << orders;
      ++orders;
      sound += expected.empty() ? 1 : 0;
    }
    const auto with = [&](OfParameters step, std::size_t c, std::size_t m) {
      steps.push_back(step);
      self(self, c, m);
      steps.pop_back();
    };
    if (computations < kComputations.size()) with(OfParameters::Compute, computations + 1, moves);
    if (moves == kMoves) return;
    with(OfParameters::Gather, computations, moves + 1);
    with(OfParameters::GiveUp, computations, moves + 1);
  };
  extend(extend, 0, 0);
  // Of m moves, two kinds each, in any places among the three computations.
  EXPECT_EQ(orders, 1U + 4 * 2 + 10 * 4 + 20 * 8 + 35 * 16 + 56 * 32);
  std::printf("%zu orders, %zu of them sound\n", orders, sound);
}

}  // namespace
}  // namespace capo
