// Times of small steps, worked out by hand, under each way for messages to travel and on shared
// devices.

#include "sim/simulate.h"
#include "tests/sim/simulated.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using simulated::costs;
using simulated::over;
using simulated::simulate_text;

// Two ranks, one microbatch: F down, B up.
constexpr const char* kTwoRanks =
    "capo 1\nplacement loop\nranks 2\nrank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\n";

std::unique_ptr<simulated::Simulated> two_ranks(Links links, const char* given = "f=2,b=3,w=1") {
  return simulate_text(kTwoRanks, over(links, costs(given, "comm=5,bw=2,bytes=6")));
}

double end_of(const Simulation& s, std::int32_t rank, const char* label) {
  for (TaskId id = 0; id < s.graph().tasks.size(); ++id) {
    if (s.graph().tasks[id].rank == rank && s.label(id) == label) {
      return s.times().end_of(s.graph(), id);
    }
  }
  ADD_FAILURE() << "no " << label;
  return -1;
}

TEST(Simulate, IdealLinksAddTheirTimeToTheWay) {
  // F 0-2, 8 on the way, F 10-12, B 12-16, 8 on the way, B 24-28.
  const auto s = two_ranks(Links::Ideal);
  EXPECT_EQ((*s)->makespan(), 28);
  EXPECT_EQ(end_of(**s, 1, "F1.0"), 12);
  EXPECT_EQ((*s)->graph().tasks.size(), 4U);
}

TEST(Simulate, ARendezvousOccupiesBothEndsForTheWholeTime) {
  const auto s = two_ranks(Links::Rendezvous);
  EXPECT_EQ((*s)->makespan(), 28);
  EXPECT_EQ(end_of(**s, 0, "send-F1.0"), 10);
  EXPECT_EQ(end_of(**s, 1, "recv-F1.0"), 10);
}

TEST(Simulate, ABufferedSendEndsWhenItsBytesAreOut) {
  const auto s = two_ranks(Links::Buffered);
  EXPECT_EQ((*s)->makespan(), 28);
  EXPECT_EQ(end_of(**s, 0, "send-F1.0"), 5);
  EXPECT_EQ(end_of(**s, 1, "recv-F1.0"), 10);
}

TEST(Simulate, AReceiverThatIsLateMakesARendezvousWaitAndABufferNot) {
  // Rank 1 is busy with microbatch 0's forward until it asks for microbatch 1.
  const char* text =
      "capo 1\nplacement loop\nranks 2\n"
      "rank 0: F1.0 send-F1.0 F1.1 send-F1.1 recv-B1.0 B1.0 recv-B1.1 B1.1\n"
      "rank 1: recv-F1.0 F1.0 recv-F1.1 F1.1 B1.0 send-B1.0 B1.1 send-B1.1\n";
  const Costs given = costs("f=1,b=1,w=0", "r1:f=10", "comm=1");
  const auto waits = simulate_text(text, over(Links::Rendezvous, given));
  const auto buffers = simulate_text(text, over(Links::Buffered, given));
  // Rank 1: recv 0 at 2, F 2-12. A receive is issued behind the computation before it: from 12.
  EXPECT_EQ(end_of(**waits, 0, "send-F1.1"), 13);
  EXPECT_EQ(end_of(**waits, 1, "recv-F1.1"), 13);
  EXPECT_EQ(end_of(**buffers, 0, "send-F1.1"), 2);
  EXPECT_EQ(end_of(**buffers, 1, "recv-F1.1"), 12);
}

TEST(Simulate, ACompositeTakesItsMembersTogetherTimesTheOverlap) {
  const char* text = "capo 1\nrank 0: F1.0 (F1.1 B1.0) B1.1\n";
  EXPECT_EQ((*simulate_text(text, {.costs = costs("f=2,b=3,w=1")}))->makespan(), 12);
  EXPECT_EQ((*simulate_text(text, {.costs = costs("f=2,b=3,w=1,overlap=0.5")}))->makespan(), 9);
}

TEST(Simulate, WeightGradientsOnTheirOwnStreamRunBeside) {
  const char* list = "[1, -1, -1.5, 1, -1, -1.5]";
  SimulationOptions apart{.costs = costs("f=1,b=1,w=5")};
  apart.check.environment.weight_stream = true;
  EXPECT_EQ((*simulate_text(list, {.costs = costs("f=1,b=1,w=5")}))->makespan(), 14);
  EXPECT_EQ((*simulate_text(list, apart))->makespan(), 12);
}

constexpr const char* kApart = "capo 1\nranks 2\nrank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\n";

TEST(Simulate, RanksThatShareADeviceComputeSideBySide) {
  const auto simulated = [](const char* beside, std::vector<std::int32_t> devices) {
    Costs shared = costs("f=2,b=3,w=0", beside);
    shared.devices = std::move(devices);
    return simulate_text(kApart, {.costs = std::move(shared)});
  };
  EXPECT_EQ((*simulated("beside=1", {}))->makespan(), 5);
  EXPECT_EQ((*simulated("beside=1", {0, 1}))->makespan(), 5) << "each has a device of its own";
  const auto halved = simulated("beside=1", {0, 0});
  EXPECT_EQ(end_of(**halved, 0, "F1.0"), 4);
  EXPECT_EQ(end_of(**halved, 1, "F1.0"), 4);
  EXPECT_EQ((*halved)->makespan(), 10);
  EXPECT_EQ((*simulated("beside=0.75", {0, 0}))->makespan(), 7.5);
  EXPECT_EQ((*simulated("beside=0.5", {0, 0}))->makespan(), 5);
  EXPECT_EQ((*simulated("beside=0.25", {0, 0}))->makespan(), 5) << "none is faster than alone";
  EXPECT_EQ((*simulated("beside=2", {0, 0}))->makespan(), 20) << "they are in each other's way";
}

TEST(Simulate, OnASharedDeviceEachComputationHasItsOwnShare) {
  // Rank 0's forward does not mind the other; rank 1's runs at half its speed until 2, and is then
  // alone.
  Costs shared = costs("f=2,b=0,w=0", "r0:beside=0.5");
  shared.devices = {0, 0};
  const auto s = simulate_text(kApart, {.costs = shared});
  EXPECT_EQ(end_of(**s, 0, "F1.0"), 2);
  EXPECT_EQ(end_of(**s, 1, "F1.0"), 3);
}

TEST(Simulate, ComputationIsSlowWhileItsDeviceCommunicates) {
  // Rank 0 sends for 4 from 1 on; F1.1 of 6 runs at half speed for those 4, so it ends at 1+4+4.
  const char* text =
      "capo 1\nplacement loop\nranks 2\n"
      "rank 0: F1.0 send-F1.0 F1.1 send-F1.1 recv-B1.0 B1.0 recv-B1.1 B1.1\n"
      "rank 1: recv-F1.0 recv-F1.1 F1.0 F1.1 B1.0 send-B1.0 B1.1 send-B1.1\n";
  const auto s = simulate_text(
      text, over(Links::Rendezvous, costs("f=1,b=1,w=0,comm=4,slowdown=2", "r0:f=6")));
  EXPECT_EQ(end_of(**s, 0, "F1.0"), 6);
  EXPECT_EQ(end_of(**s, 0, "send-F1.0"), 10);
  EXPECT_EQ(end_of(**s, 0, "F1.1"), 6 + 4 + 4);
}

TEST(Simulate, AMessageIsSlowerWhileItsSenderComputes) {
  // Rank 0 computes until 12: of the first message, which begins at 6, three quarters have moved
  // by then. Beside the second one, from 13 on, only the rank that receives it computes.
  const char* text =
      "capo 1\nplacement loop\nranks 2\n"
      "rank 0: F1.0 send-F1.0 F1.1 send-F1.1 recv-B1.0 B1.0 recv-B1.1 B1.1\n"
      "rank 1: recv-F1.0 recv-F1.1 F1.0 F1.1 B1.0 send-B1.0 B1.1 send-B1.1\n";
  const auto s =
      simulate_text(text, over(Links::Rendezvous, costs("f=1,b=1,w=0,comm=4,crowded=2", "r0:f=6")));
  EXPECT_EQ(end_of(**s, 0, "F1.1"), 12);
  EXPECT_EQ(end_of(**s, 0, "send-F1.0"), 13);
  EXPECT_EQ(end_of(**s, 1, "recv-F1.0"), 13);
  EXPECT_EQ(end_of(**s, 1, "recv-F1.1"), 17);
}

TEST(Simulate, ACollectiveIsSlowerWhileAnyOfItsRanksComputes) {
  // All reduce from 1 on. Ranks 0 and 1 compute until 7, and rank 2 does not: of what is 4 alone,
  // half of 6 has moved by then.
  const char* text =
      "capo 1\nranks 3\nrank 0: F1.0 B1.0 reduce1 F2.0 B2.0\nrank 1: F1.0 B1.0 reduce1 F2.0 B2.0\n"
      "rank 2: F1.0 B1.0 reduce1\n";
  const auto reduced = [&](std::vector<std::vector<std::int32_t>> groups, const char* crowded) {
    SimulationOptions options{
        .costs = costs("f=0.5,b=0.5,w=0,reduce=4", "r0.c2:f=3,b=3", "r1.c2:f=3,b=3", crowded)};
    for (std::vector<std::int32_t>& members : groups) {
      options.check.groups.push_back(
          {.name = "dp", .members = std::move(members), .actions = {Kind::ReduceGradient}});
    }
    return simulate_text(text, options);
  };
  const auto all = reduced({{0, 1, 2}}, "crowded=2");
  EXPECT_EQ(end_of(**all, 0, "B2.0"), 7);
  EXPECT_EQ(end_of(**all, 0, "reduce1"), 8);
  EXPECT_EQ(end_of(**all, 1, "reduce1"), 8);
  EXPECT_EQ(end_of(**all, 2, "reduce1"), 8);
  EXPECT_EQ(end_of(**reduced({{0, 1, 2}}, "crowded=1"), 2, "reduce1"), 5);
  EXPECT_EQ(end_of(**reduced({{0}, {1}, {2}}, "crowded=2"), 0, "reduce1"), 5)
      << "alone in its group";
}

// An addition of a dummy is three passes over memory; a copy is two, and zeros are one.
TEST(Simulate, TheFirstBackwardOfAChunkHasNoGradientToAddTo) {
  const auto ends = [](const char* order, Costs of) {
    const auto s = simulate_text(std::string("capo 1\nmicrobatches 2\nrank 0: ") + order,
                                 {.costs = std::move(of)});
    return std::pair((*s)->makespan(), (*s)->bounds().makespan.value);
  };
  Model model;
  model.modules.list = {
      {.name = "m", .cost = {.forward = 1, .backward = 10, .weight = 20, .autograd = 3}}};
  model.modules.layers = {{{0}}};
  Costs of = *costs_of(model);
  EXPECT_EQ(ends("F1.0 F1.1 B1.0 B1.1", of), std::pair(2 + 32.0 + 33.0, 2 + 2 * 30.0));
  EXPECT_EQ(ends("F1.0 F1.1 B1.0 W1.0 B1.1 W1.1", of).first, 2 + 11.0 + 20 + 10 + 20);
  of.halves_hand_dummies = true;
  EXPECT_EQ(ends("F1.0 F1.1 B1.0 W1.0 B1.1 W1.1", of).first, 2 + 12.0 + 20 + 13 + 20);
  of.halves_hand_dummies = false;
  of.alike = true;
  EXPECT_EQ(ends("F1.0 F1.1 B1.0 W1.0 B1.1 W1.1", of).first, 2 + 2 * 30.0);
  model.modules.list[0].cost.whole = 30;
  const auto [makespan, bound] = ends("F1.0 F1.1 B1.0 B1.1", *costs_of(model));
  EXPECT_EQ(makespan, 2 + 29.0 + 30.0);
  EXPECT_EQ(bound, makespan);
}

TEST(Simulate, TheFirstBytesOfAMessageDoNotWaitForItsReceive) {
  const auto end = [](const char* ahead) {
    const char* text =
        "capo 1\nplacement loop\nranks 2\n"
        "rank 0: F1.0 send-F1.0 F1.1 send-F1.1 recv-B1.0 B1.0 recv-B1.1 B1.1\n"
        "rank 1: recv-F1.0 F1.0 recv-F1.1 F1.1 B1.0 send-B1.0 B1.1 send-B1.1\n";
    const auto s = simulate_text(
        text, over(Links::Rendezvous, costs("f=1,b=1,w=0,bw=1,bytes=4",
                                            (std::string("ahead=") + ahead).c_str(), "r1:f=9")));
    EXPECT_EQ(end_of(**s, 1, "recv-F1.0"), 5);  // that receive waits for its send
    EXPECT_EQ(end_of(**s, 0, "send-F1.1"), end_of(**s, 1, "recv-F1.1"));
    return end_of(**s, 1, "recv-F1.1");
  };
  EXPECT_EQ(end("0"), 5 + 9 + 4);
  EXPECT_EQ(end("3"), 5 + 9 + 1);
  EXPECT_EQ(end("100"), 5 + 9);
}

TEST(Simulate, NothingOfAFusedGroupGoesAhead) {
  const auto makespan = [](const char* first, const char* second, const char* ahead) {
    const std::string text = std::string("capo 1\nplacement loop\nranks 2\n") +
                             "rank 0: F1.0 send-F1.0 F1.1 " + first + " B1.0 recv-B1.1 B1.1\n" +
                             "rank 1: recv-F1.0 F1.0 B1.0 " + second + " F1.1 B1.1 send-B1.1\n";
    return (*simulate_text(text.c_str(),
                           over(Links::Rendezvous, costs("f=10,b=10,w=0,bw=1,bytes=4", ahead))))
        ->makespan();
  };
  const char* sends_first = "(send-F1.1 recv-B1.0)";
  const char* receives_first = "(recv-B1.0 send-F1.1)";
  const double without = makespan(sends_first, "(send-B1.0 recv-F1.1)", "ahead=0");
  for (const char* second : {"(send-B1.0 recv-F1.1)", "(recv-F1.1 send-B1.0)"}) {
    EXPECT_EQ(makespan(sends_first, second, "ahead=4"), without);
    EXPECT_EQ(makespan(receives_first, second, "ahead=4"), without);
  }
}

TEST(Simulate, BothWaysOfSimulatingGiveTheSameTimes) {
  for (const Links links : {Links::Ideal, Links::Rendezvous, Links::Buffered}) {
    const auto s = simulated::simulate_named({.name = "zbv-1p", .ranks = 4, .microbatches = 9},
                                             over(links, costs("f=3,b=5,w=2,comm=1,bw=4,bytes=2")));
    const Durations durations((*s)->subject(), s->options.costs);
    const TaskTimes freely = run_freely((*s)->subject(), durations);
    const TaskTimes shared = run_shared((*s)->subject(), durations, s->options.costs);
    ASSERT_EQ(freely.at.size(), shared.at.size());
    for (std::size_t vertex = 0; vertex < freely.at.size(); ++vertex) {
      EXPECT_EQ(freely.at[vertex].begin, shared.at[vertex].begin);
      EXPECT_EQ(freely.at[vertex].done, shared.at[vertex].done);
    }
    EXPECT_EQ(freely.makespan, shared.makespan);
  }
}

TEST(Simulate, FurtherWeightGradientsOfACallTakeTheirShare) {
  const auto makespan = [](const std::string& rest, const char* price) {
    return (*simulate_text("capo 1\nrank 0: F1.0 F1.1 B1.0 B1.1 " + rest + "\n",
                           {.costs = costs(price)}))
        ->makespan();
  };
  EXPECT_EQ(makespan("W1.0 W1.1", "f=1,b=1,w=6,fuse=0.5"), 4 + 6 + 6);
  EXPECT_EQ(makespan("(W1.0 W1.1)", "f=1,b=1,w=6"), 4 + 6 + 6);
  EXPECT_EQ(makespan("(W1.0 W1.1)", "f=1,b=1,w=6,fuse=0.5"), 4 + 6 + 3);
  EXPECT_EQ(makespan("(W1.0 W1.1)", "f=1,b=1,w=6,fuse=0.5,overlap=0.5"), 4 + 6 + 3)
      << "one call runs beside nothing";
  EXPECT_EQ(makespan("(F1.2 W1.0 W1.1) B1.2 W1.2", "f=1,b=1,w=6,fuse=0.5,overlap=0.5"),
            4 + (1 + 6 + 3) / 2 + 1 + 6);
}

TEST(Simulate, ReductionsAndUnshardsTakeTheirTime) {
  const char* text = "capo 1\nrank 0: unshard1 F1.0 B1.0 reduce1\n";
  EXPECT_EQ((*simulate_text(text, {.costs = costs("f=1,b=1,w=1,unshard=4,reduce=7")}))->makespan(),
            4 + 3 + 7);
}

}  // namespace
}  // namespace capo
