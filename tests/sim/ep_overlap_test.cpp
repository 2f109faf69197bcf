// Megatron-LM's overlap of expert-parallel communication, timed: one layer, two microbatches, so
// small that the times are worked out here by hand.
//
// Costs: f = b = w = 2, of which the experts are one half, dispatch = combine = 1. Comp and comm
// are the two streams; numbers are from-to. Order [1, 1, -1, -1.5, -1, -1.5] with overlap:
//
//   F0          comp pre 0-1, experts 2-3              comm dispatch 1-2, combine 3-4
//   F1 & B0 W0  comp f.pre 3-4, b.experts 5-6,         comm b.combine 4-5, f.dispatch 5-6,
//                    b.expertsW 6-7, f.experts 7-8,         b.dispatch 6-7, f.combine 8-9
//                    b.pre 8-9, b.preW 9-10
//   B1 W1       comp experts 10-11, expertsW 11-12,    comm combine 9-10, dispatch 11-12
//                    pre 12-13, preW 13-14                                               makespan
//                    14
//
// Weights not delayed, [1, 1, -1, -1]: b.experts takes 2, 5-7, and b.pre 8-10; the last backward
// cannot hide its dispatch: combine 9-10, experts 10-12, dispatch 12-13, pre 13-15.      makespan
// 15 Without overlap each forward and backward takes its exchanges as well: 2 (4 + 4 + 2) = 20.

#include "tests/sim/simulated.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace capo {
namespace {

using simulated::costs;
using simulated::simulate_text;

constexpr const char* kDelayed = "[1, 1, -1, -1.5, -1, -1.5]";
constexpr const char* kWhole = "[1, 1, -1, -1]";

SimulationOptions options(bool overlap) {
  SimulationOptions options{.costs = costs("f=2,b=2,w=2,dispatch=1,combine=1")};
  options.check.environment.ep_overlap = overlap;
  return options;
}

TEST(EpOverlapTimes, DelayedWeightsHideTheLastDispatch) {
  EXPECT_EQ((*simulate_text(kDelayed, options(true)))->makespan(), 14);
  EXPECT_EQ((*simulate_text(kWhole, options(true)))->makespan(), 15);
}

TEST(EpOverlapTimes, WithoutOverlapEveryExchangeIsExposed) {
  EXPECT_EQ((*simulate_text(kDelayed, options(false)))->makespan(), 20);
  EXPECT_EQ((*simulate_text(kWhole, options(false)))->makespan(), 20);
}

TEST(EpOverlapTimes, EveryNodeRunsWhenWorkedOutByHand) {
  const auto simulated = simulate_text(kDelayed, options(true));
  const Simulation& s = **simulated;
  std::multimap<std::string, std::pair<double, double>> ran;
  for (TaskId id = 0; id < s.graph().tasks.size(); ++id) {
    ran.emplace(s.label(id),
                std::pair{s.times().start_of(s.graph(), id), s.times().end_of(s.graph(), id)});
  }
  const std::multimap<std::string, std::pair<double, double>> by_hand{
      {"F1.0 pre-dispatch", {0, 1}},   {"dispatch-F1.0", {1, 2}},
      {"F1.0 experts", {2, 3}},        {"combine-F1.0", {3, 4}},
      {"combine-B1.0", {4, 5}},        {"F1.1 pre-dispatch", {3, 4}},
      {"B1.0 experts", {5, 6}},        {"dispatch-F1.1", {5, 6}},
      {"W1.0 experts", {6, 7}},        {"dispatch-B1.0", {6, 7}},
      {"F1.1 experts", {7, 8}},        {"combine-F1.1", {8, 9}},
      {"B1.0 pre-dispatch", {8, 9}},   {"W1.0 pre-dispatch", {9, 10}},
      {"combine-B1.1", {9, 10}},       {"B1.1 experts", {10, 11}},
      {"W1.1 experts", {11, 12}},      {"dispatch-B1.1", {11, 12}},
      {"B1.1 pre-dispatch", {12, 13}}, {"W1.1 pre-dispatch", {13, 14}}};
  EXPECT_EQ(ran, by_hand);
}

TEST(EpOverlapTimes, PullRequest2376RunsItsSlotsOnTwoStreams) {
  // The list with delayed weight gradients, layers 1 and 2 + 3, eight microbatches.
  const std::string list =
      "[1, 1, 1, 1, 2, 3, 2, -3, -3.5, 3, -2, -2.5, 2, -3, -3.5, 3, -2, -2.5, 2, -3, -3.5, 3, -2, "
      "-2.5, 1, -3, -3.5, -2, -2.5, 1, -1, -1.5, 1, -1, -1.5, 1, -1, -1.5, 2, -1, 3, -1.5, 2, -3, "
      "-3.5, 3, -2, -2.5, 2, -3, -3.5, 3, -2, -2.5, 2, -3, -3.5, 3, -2, -2.5, -3, -3.5, -2, -2.5, "
      "-1, -1.5, -1, -1.5, -1, -1.5, -1, -1.5]";
  const auto overlapped = simulate_text(list, options(true));
  const auto apart = simulate_text(list, options(false));
  const Simulation& s = **overlapped;
  EXPECT_EQ(s.graph().streams.size(), 2U);
  std::set<int> slots;
  for (const Step& step : s.subject().lowered.ranks.front()) slots.insert(step.slot);
  // Slot 8 takes the place of 11 with an early release, 1 and 12 are multi-token prediction's.
  EXPECT_EQ(slots, (std::set<int>{0, 2, 3, 4, 5, 6, 7, 9, 10, 11, 13}));
  // 24 layers' forwards, backwards and weight gradients, two exchanges each way.
  EXPECT_EQ((*apart)->makespan(), 24 * (2 + 2 + 2 + 2 * 2));
  EXPECT_GE(s.makespan(), 24 * (2 + 2 + 2));
  EXPECT_LT(s.makespan(), (*apart)->makespan());
}

TEST(EpOverlapTimes, SlotsOfMultiTokenPredictionAndEarlyReleaseCanBeAskedFor) {
  SimulationOptions with = options(true);
  with.check.environment.ep_slots = {.multi_token_prediction = true, .early_release = true};
  const auto simulated = simulate_text(kDelayed, with);
  std::set<int> slots;
  for (const Step& step : (**simulated).subject().lowered.ranks.front()) slots.insert(step.slot);
  EXPECT_EQ(slots, (std::set<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13}));
}

}  // namespace
}  // namespace capo
