// Product against oracle on every way to begin a reduction of a chunk and to wait for it: all
// orders of one chunk behind whose F and B up to six such entries stand, one of them at most a
// reduction.

#include "testing/oracle/waits.h"
#include "tests/core/enumeration/moves_among.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace capo {
namespace {

using oracle::OfWaits;

std::vector<Entry> order_of(const std::vector<OfWaits>& steps) {
  std::vector<Entry> order{{.chunk = 1, .microbatch = 0, .kind = Kind::Forward},
                           {.chunk = 1, .microbatch = 0, .kind = Kind::Backward}};
  for (const OfWaits step : steps)
    order.push_back(
        {.chunk = 1,
         .kind = step == OfWaits::Begin ? Kind::ReduceGradient : Kind::WaitReduceGradient});
  return order;
}

std::vector<std::string> found_in(const std::vector<OfWaits>& steps) {
  Input input;
  input.schedule = {.naming = Naming::Named, .microbatches = 1, .ranks = {RankOrder{.chunks = 1}}};
  input.schedule.ranks[0].order = order_of(steps);
  const CheckResult result = check(input);
  std::vector<std::string> found;
  for (const Diagnostic& finding : result.diagnostics.kept())
    found.push_back(fmt::format("{}@{}", finding.rule, finding.witness.tasks.front().index));
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> expected_in(const std::vector<OfWaits>& steps) {
  std::vector<std::string> expected;
  for (const std::size_t at : oracle::waits_for_nothing(steps))
    expected.push_back(fmt::format("G16@{}", at + 2));
  const auto begun = std::find(steps.begin(), steps.end(), OfWaits::Begin);
  const bool any_wait = std::find(steps.begin(), steps.end(), OfWaits::Wait) != steps.end();
  if (any_wait && oracle::left_pending(steps) > 0)
    expected.push_back(fmt::format("G17@{}", begun - steps.begin() + 2));
  return expected;
}

TEST(ReductionWaits, HaveTheFindingsOfTheOracle) {
  std::size_t orders = 0;
  std::size_t sound = 0;
  testing_support::for_every_order<OfWaits>(
      {}, {OfWaits::Begin, OfWaits::Wait}, 6, [&](const std::vector<OfWaits>& steps) {
        if (std::count(steps.begin(), steps.end(), OfWaits::Begin) > 1) return;  // G15's
        const auto expected = expected_in(steps);
        EXPECT_EQ(found_in(steps), expected) << "order " << orders;
        ++orders;
        sound += expected.empty() ? 1 : 0;
      });
  // Among n entries none is a reduction, or any one.
  EXPECT_EQ(orders, 1U + 2 + 3 + 4 + 5 + 6 + 7);
  EXPECT_EQ(sound, 3U) << "nothing, a reduction, and a reduction with its wait";
  std::printf("%zu orders, %zu of them sound\n", orders, sound);
}

}  // namespace
}  // namespace capo
