#include "sim/task_times.h"
#include "tests/sim/simulated.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace capo {
namespace {

using simulated::costs;
using simulated::over;
using simulated::simulate_text;

// The last of so many is told, whether a byte counts them or not.
TEST(WaitCounts, TellTheLastOfFewAndOfMany) {
  for (const int ranks : {254, 255, 256, 300}) {
    std::string text = "capo 1\nranks " + std::to_string(ranks) + "\n";
    SimulationOptions options{.costs = costs("f=1,b=1,w=0,reduce=3", "r1:b=5")};
    CollectiveGroup group{.name = "dp", .members = {}, .actions = {Kind::ReduceGradient}};
    for (int rank = 0; rank < ranks; ++rank) {
      text += "rank " + std::to_string(rank) + ": F1.0 B1.0 reduce1\n";
      group.members.push_back(rank);
    }
    options.check.groups = {group};
    const auto s = simulate_text(text.c_str(), options);
    EXPECT_EQ((*s)->makespan(), 6 + 3) << ranks;
  }
}

constexpr const char* kTwoRanks =
    "capo 1\nplacement loop\nranks 2\nrank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\n";

// F 0-2 on rank 0, 5 on the way, F 7-9 and B 9-13 on rank 1, 5 on the way, B 18-22 on rank 0.
std::unique_ptr<simulated::Simulated> two_ranks(Links links) {
  return simulate_text(kTwoRanks, over(links, costs("f=2,b=3,w=1,comm=5")));
}

TEST(Idle, EachIntervalHasItsCauseAndWhatItWaitsFor) {
  for (const Links links : {Links::Ideal, Links::Rendezvous, Links::Buffered}) {
    const auto s = two_ranks(links);
    const RankTimes& first = (*s)->ranks()[0];
    const RankTimes& second = (*s)->ranks()[1];
    EXPECT_EQ(first.busy, 6);
    EXPECT_EQ(first.bubble, 16);
    EXPECT_EQ(first.first, 0);
    EXPECT_EQ(first.last, 22);
    ASSERT_EQ(first.idle.size(), 1U);
    EXPECT_EQ(first.idle[0].cause, Idle::Cause::Wait);
    EXPECT_EQ(first.idle[0].begin, 2);
    EXPECT_EQ(first.idle[0].end, 18);
    EXPECT_EQ(first.idle[0].exposed, 5);  // the other rank computes until 13
    EXPECT_EQ((*s)->label(first.idle[0].next), "B1.0");
    EXPECT_EQ((*s)->graph().tasks[first.idle[0].waits_for].rank, 1);

    ASSERT_EQ(second.idle.size(), 2U);
    EXPECT_EQ(second.idle[0].cause, Idle::Cause::WarmUp);
    EXPECT_EQ(second.idle[0].end, 7);
    EXPECT_EQ(second.idle[0].exposed, 5);
    EXPECT_EQ((*s)->label(second.idle[0].waits_for), "F1.0");
    EXPECT_EQ(second.idle[1].cause, Idle::Cause::Drain);
    EXPECT_EQ(second.idle[1].begin, 13);
    EXPECT_EQ(second.idle[1].end, 22);
    EXPECT_EQ(second.idle[1].exposed, 0);
  }
}

TEST(Idle, TheSpanIsOfTheRankThatIsAtItLongest) {
  const auto s = two_ranks(Links::Ideal);
  EXPECT_EQ((*s)->span(), 22);
  EXPECT_EQ((*s)->makespan(), 22);
  const auto v = simulated::simulate_named({.name = "zbv-1p", .ranks = 4, .microbatches = 8});
  // ZB-V: no bubble in the span, (p-1)/2 forwards of a stage in the makespan; a chunk takes 1 here.
  EXPECT_EQ((*v)->span(), 48);
  EXPECT_EQ((*v)->makespan(), 48 + 3);
}

TEST(Idle, WeightGradientsBesideCountOnce) {
  SimulationOptions apart{.costs = costs("f=1,b=1,w=5")};
  apart.check.environment.weight_stream = true;
  const auto s = simulate_text("[1, -1, -1.5, 1, -1, -1.5]", apart);
  EXPECT_EQ((*s)->ranks()[0].busy, 12);
  EXPECT_EQ((*s)->ranks()[0].bubble, 0);
}

TEST(Idle, TheCriticalPathLeadsFromTheBeginningToTheEnd) {
  for (const Links links : {Links::Ideal, Links::Rendezvous}) {
    const auto s = two_ranks(links);
    std::vector<std::string> path;
    for (const TaskId task : critical_path((*s)->subject(), (*s)->times())) {
      path.push_back(std::to_string((*s)->graph().tasks[task].rank) + " " + (*s)->label(task));
    }
    EXPECT_EQ(path.front(), "0 F1.0");
    EXPECT_EQ(path.back(), "0 B1.0");
    if (links == Links::Ideal) {
      EXPECT_EQ(path, (std::vector<std::string>{"0 F1.0", "1 F1.0", "1 B1.0", "0 B1.0"}));
    }
  }
}

TEST(Idle, AnEmptyRankIsIdleThroughout) {
  const auto s = simulate_text("capo 1\nranks 2\nrank 0: F1.0 B1.0\nrank 1:\n");
  if (!s->simulation) return;  // refused by the rules of shape, which is another matter
  EXPECT_EQ((*s)->ranks()[1].busy, 0);
  EXPECT_EQ((*s)->ranks()[1].bubble, (*s)->makespan());
}

}  // namespace
}  // namespace capo
