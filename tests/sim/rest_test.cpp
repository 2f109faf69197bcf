// Devices that rest a part of the step, on steps whose shares can be worked out by hand.

#include "sim/simulate.h"
#include "tests/sim/simulated.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace capo {
namespace {

using simulated::costs;
using simulated::over;
using simulated::simulate_named;
using simulated::simulate_text;

// F of 2 and a backward of 4 on each rank, and twice 5 on the way: each device computes for 6
// of 22.
constexpr const char* kThereAndBack =
    "capo 1\nplacement loop\nranks 2\nrank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\n";
constexpr const char* kWithWay = "f=2,b=3,w=1,comm=5";

double makespan(const Costs& of, Links links = Links::Ideal) {
  return (*simulate_text(kThereAndBack, over(links, of)))->makespan();
}

TEST(Rest, ComputationsTakeLessByTheShareInWhichTheirDeviceRests) {
  const double takes = std::cbrt(6.0 / 22);
  for (const Links links : {Links::Ideal, Links::Rendezvous, Links::Buffered}) {
    const auto s = simulate_text(kThereAndBack, over(links, costs(kWithWay, "rest=0.5")));
    EXPECT_DOUBLE_EQ((*s)->makespan(), 10 + 12 * takes);
    EXPECT_DOUBLE_EQ((*s)->ranks()[1].busy, 6 * takes) << "what is told is of the second time";
  }
  EXPECT_DOUBLE_EQ(makespan(costs(kWithWay, "r0:rest=0.5")), 10 + 6 + 6 * takes);
}

TEST(Rest, NoComputationTakesLessThanItLeaves) {
  EXPECT_DOUBLE_EQ(makespan(costs(kWithWay, "rest=0.25")), 10 + 12 * 0.75);
}

// A device that is slower at its limit of power has the same clock where it rests.
TEST(Rest, APaceIsAboutTheLimit) {
  EXPECT_DOUBLE_EQ(makespan(costs(kWithWay, "r1:pace=1.5")), 10 + 6 + 6 * 1.5);
  const Costs with_rest = costs(kWithWay, "rest=0.5", "r1:pace=1.25");
  // The first simulation has it at its limit all of the time, for 7.5 of 23.5.
  const double first = std::cbrt(6 / 23.5);
  const double second = 1.25 * std::cbrt(7.5 / 23.5);
  EXPECT_DOUBLE_EQ(makespan(with_rest), 10 + 6 * first + 6 * second);
  EXPECT_DOUBLE_EQ(makespan(costs(kWithWay, "rest=0.1", "r1:pace=1.25")), 10 + 12 * 0.9);
}

TEST(Rest, ExchangesTakeAllOfTheirTime) {
  // F of 3 and a backward of 5, in each of which a dispatch takes 1: 8 of 26.
  const double takes = std::cbrt(8.0 / 26);
  EXPECT_DOUBLE_EQ(makespan(costs(kWithWay, "dispatch=1,rest=0.5")), 10 + 4 + 12 * takes);
}

TEST(Rest, OfADeviceThatAlwaysComputesChangesNothing) {
  const auto s =
      simulate_text("capo 1\nrank 0: F1.0 B1.0\n", {.costs = costs("f=2,b=3,w=1,rest=0.9")});
  EXPECT_EQ((*s)->makespan(), 6);
}

TEST(Rest, OfADeviceThatRanksShareIsWhereNoneOfThemComputes) {
  Costs shared = costs(kWithWay, "rest=0.5");
  shared.devices = {0, 0};
  EXPECT_DOUBLE_EQ(makespan(shared), 10 + 12 * (std::cbrt(12.0 / 22)));
  // Two that compute side by side use it once: all of the step.
  const char* apart = "capo 1\nranks 2\nrank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\n";
  EXPECT_EQ((*simulate_text(apart, {.costs = shared}))->makespan(), 12);
}

Model two_layers(std::optional<double> rest) {
  Model model;
  const ModuleCost cost{
      .forward = 2, .backward = 3, .weight = 1, .whole = 4, .rest = rest, .quantize_forward = 1};
  model.modules.list = {{.name = "m", .cost = cost}};
  model.modules.layers = {{{0}}, {{0}}};
  model.transfer.latency = 5;
  return model;
}

TEST(Rest, IsAlsoThatOfAModelFile) {
  const auto with_rest = costs_of(two_layers(0.5));
  ASSERT_TRUE(with_rest.has_value());
  const double takes = std::cbrt(6.0 / 22);
  const auto s = simulate_text(kThereAndBack, over(Links::Ideal, *with_rest));
  EXPECT_DOUBLE_EQ((*s)->makespan(), 10 + 12 * takes);
  EXPECT_DOUBLE_EQ((*s)->quantizing_of(0), takes) << "it is a part of a forward";
}

// All times of a step of some ranks, in which nothing is even.
std::vector<double> times_of(const Costs& of, Links links) {
  const auto s = simulate_named({.name = "zbv-1p", .ranks = 3, .microbatches = 7}, over(links, of));
  std::vector<double> all{(*s)->makespan(), (*s)->bounds().makespan.value, (*s)->span()};
  for (const TaskTimes::At& at : (*s)->times().at) {
    all.push_back(at.begin);
    all.push_back(at.done);
  }
  return all;
}

TEST(Rest, OfZeroChangesNoBit) {
  for (const Links links : {Links::Ideal, Links::Rendezvous}) {
    const auto times = times_of(costs("f=1.1,b=1.3,w=0.7,comm=0.3"), links);
    EXPECT_EQ(times_of(costs("f=1.1,b=1.3,w=0.7,comm=0.3,rest=0"), links), times);
    EXPECT_NE(times_of(costs("f=1.1,b=1.3,w=0.7,comm=0.3,rest=0.1"), links), times);
  }
  const auto silent = costs_of(two_layers({}));
  const auto zero = costs_of(two_layers(0));
  ASSERT_TRUE(silent.has_value() && zero.has_value());
  EXPECT_FALSE(zero->tell_rest());
  EXPECT_EQ(makespan(*silent), makespan(*zero));
}

TEST(Rest, AThirdSimulationWouldChangeLittle) {
  for (const char* name : {"gpipe", "1f1b", "zbv-1p"}) {
    for (const Links links : {Links::Ideal, Links::Rendezvous}) {
      SCOPED_TRACE(name);
      const schedules::Request request{.name = name, .ranks = 4, .microbatches = 8};
      const auto once = simulate_named(request, over(links, costs("f=4,b=4,w=4,comm=0.4")));
      const auto twice =
          simulate_named(request, over(links, costs("f=4,b=4,w=4,comm=0.4,rest=0.3")));
      Costs again = (*twice)->costs();
      again.used = used_shares((*twice)->subject(), again, (*twice)->times());
      const double third = simulate((*twice)->subject(), again).makespan;
      const double second = (*twice)->makespan();
      EXPECT_LT(second, (*once)->makespan());
      EXPECT_LT(std::abs(third - second), 0.05 * ((*once)->makespan() - second));
    }
  }
}

TEST(Rest, BoundsAreOfTheTimesThatTasksTake) {
  const auto s = simulate_text(kThereAndBack, over(Links::Ideal, costs(kWithWay, "rest=0.9")));
  const double takes = std::cbrt(6.0 / 22);
  // One microbatch goes there and back, and its weight gradients are not in its way.
  EXPECT_DOUBLE_EQ((*s)->bounds().makespan.value, 10 + 2 * (2 + 3) * takes);
  EXPECT_DOUBLE_EQ((*s)->makespan(), 10 + 2 * (2 + 4) * takes);
}

}  // namespace
}  // namespace capo
