// The shortest cycle of waits: exact texts on small schedules, and on random ones the length that a
// search by distances between all vertices finds.

#include "core/graph/execution.h"
#include "core/graph/lowered.h"
#include "tests/core/graph/random_lowering.h"
#include "tests/core/graph/random_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace capo {
namespace {

using testing_support::cycle_of;
using testing_support::Lines;
using testing_support::random_schedule;
using testing_support::shuffle_transfers;
using testing_support::Wired;
using testing_support::wired;
using testing_support::wired_directly;
using testing_support::word_of;

// The cycle is as long for every microbatch that rank 1 puts before 0.
TEST(ShortestCycle, AnyDistanceAlongOneStreamIsOneStep) {
  EXPECT_EQ(cycle_of(wired_directly("ranks 2\nmicrobatches 4\nplacement chain\n"
                                    "rank 0: F1.0 B1.0 F1.1 F1.2 F1.3 B1.1 B1.2 B1.3\n"
                                    "rank 1: F1.3 F1.1 F1.2 F1.0 B1.0 B1.1 B1.2 B1.3\n")),
            (Lines{"0:B1.0 (data)", "1:B1.0 (stream)", "1:F1.2 (data)", "0:F1.2 (stream)"}));
}

TEST(ShortestCycle, OfTwoCyclesTheShorterIsTaken) {
  // Ranks 0, 1 and 2 wait for each other, and so do ranks 1 and 2 alone.
  EXPECT_EQ(cycle_of(wired_directly("ranks 3\nmicrobatches 2\nplacement chain\n"
                                    "rank 0: F1.0 B1.0 F1.1 B1.1\n"
                                    "rank 1: F1.0 B1.0 F1.1 B1.1\n"
                                    "rank 2: F1.1 F1.0 B1.0 B1.1\n")),
            (Lines{"1:B1.0 (data)", "2:B1.0 (stream)", "2:F1.1 (data)", "1:F1.1 (stream)"}));
}

TEST(ShortestCycle, AStageThatReadsWhatItsRankMakesLaterIsACycleOfTwo) {
  EXPECT_EQ(cycle_of(wired_directly("ranks 1\nmicrobatches 1\nplacement chain\nchunks 2\n"
                                    "rank 0: F2.0 F1.0 B2.0 B1.0\n")),
            (Lines{"0:F2.0 (data)", "0:F1.0 (stream)"}));
}

// Each end waits for the other to begin; the send and the receive in one queue.
TEST(ShortestCycle, OfTwoSendsThatMeetNoReceiveGoesThroughBothQueues) {
  const std::string crossing =
      "ranks 2\nmicrobatches 2\nplacement chain\nchunks 1\n"
      "rank 0: F1.0 send-F1.0 F1.1 send-F1.1 recv-B1.0 B1.0\n"
      "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0 recv-F1.1 F1.1\n";
  EXPECT_EQ(cycle_of(wired(crossing)), (Lines{"0:send-F1.1 (rendezvous)", "1:recv-F1.1 (queue)",
                                              "1:send-B1.0 (rendezvous)", "0:recv-B1.0 (queue)"}));
  EXPECT_EQ(cycle_of(wired(crossing, {.communicators = Communicators::PerEdge})), Lines{});
  EXPECT_EQ(cycle_of(wired(crossing, {.transfers = TransferMode::Buffered})), Lines{});
}

// A search that stops early gives a longer cycle, never none: a deadlock would go unreported. The
// two ranks that wait for each other are the last ones, and everything before them waits as well.
TEST(ShortestCycle, HoweverLittleWorkIsAllowedACycleIsFound) {
  std::string text = "ranks 16\nmicrobatches 4\nplacement chain\n";
  for (int rank = 0; rank < 14; ++rank)
    text += "rank " + std::to_string(rank) + ": F1.0 F1.1 F1.2 F1.3 B1.0 B1.1 B1.2 B1.3\n";
  text += "rank 14: F1.0 B1.0 F1.1 F1.2 F1.3 B1.1 B1.2 B1.3\n";
  text += "rank 15: F1.1 F1.0 F1.2 F1.3 B1.0 B1.1 B1.2 B1.3\n";
  const Wired made = wired_directly(text);
  const Execution execution = execute(made.graph);
  for (const std::uint64_t work : {0, 1, 10, 100, 1'000, 10'000, 100'000}) {
    EXPECT_FALSE(shortest_cycle(made.graph, execution, work).empty()) << work;
  }
  EXPECT_EQ(shortest_cycle(made.graph, execution).size(), 4U);
}

constexpr std::uint32_t kFar = 1'000'000;
using Distances = std::vector<std::vector<std::uint32_t>>;

// One wait between vertices: an edge, or any way along one stream. Within a transfer there is none.
Distances single_waits(const TaskGraph& graph) {
  const std::size_t vertices = graph.task_of.size();
  Distances waits(vertices, std::vector<std::uint32_t>(vertices, kFar));
  for (Vertex from = 0; from < vertices; ++from) {
    graph.edges.for_each_out(from, [&](Vertex to, EdgeKind kind) {
      if (kind == EdgeKind::Stream || kind == EdgeKind::Queue) return;
      std::uint32_t& wait = waits[from][to];
      wait = std::min(wait, kind == EdgeKind::Span ? 0U : 1U);
    });
  }
  for (TaskId earlier = 0; earlier < graph.tasks.size(); ++earlier) {
    for (TaskId later = earlier + 1; later < graph.tasks.size(); ++later) {
      if (graph.tasks[earlier].stream != graph.tasks[later].stream ||
          graph.start(earlier) == graph.start(later))
        continue;
      std::uint32_t& wait = waits[graph.end(earlier)][graph.start(later)];
      wait = std::min(wait, 1U);
    }
  }
  return waits;
}

// The number of waits in the shortest cycle; nothing if there is none.
std::optional<std::size_t> shortest_by_all_distances(const TaskGraph& graph) {
  Distances distance = single_waits(graph);
  const std::size_t vertices = distance.size();
  for (std::size_t via = 0; via < vertices; ++via) {
    for (std::size_t from = 0; from < vertices; ++from) {
      if (distance[from][via] == kFar) continue;
      for (std::size_t to = 0; to < vertices; ++to) {
        distance[from][to] = std::min(distance[from][to], distance[from][via] + distance[via][to]);
      }
    }
  }
  std::uint32_t shortest = kFar;
  for (std::size_t at = 0; at < vertices; ++at) shortest = std::min(shortest, distance[at][at]);
  if (shortest == kFar) return std::nullopt;
  return shortest;
}

// The task and the others of its fused group or composite.
std::vector<TaskId> members_at(const TaskGraph& graph, TaskId task) {
  std::vector<TaskId> members;
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    if (graph.start(id) == graph.start(task)) members.push_back(id);
  }
  return members;
}

bool on_one_stream(const TaskGraph& graph, TaskId earlier, TaskId later) {
  for (const TaskId a : members_at(graph, earlier)) {
    for (const TaskId b : members_at(graph, later)) {
      if (graph.tasks[a].stream == graph.tasks[b].stream && a < b) return true;
    }
  }
  return false;
}

bool has_edge(const TaskGraph& graph, TaskId earlier, TaskId later, EdgeKind kind) {
  bool has = false;
  for (const Vertex from : {graph.start(earlier), graph.end(earlier)}) {
    graph.edges.for_each_out(from, [&](Vertex to, EdgeKind of) {
      const bool there = to == graph.start(later) || to == graph.end(later);
      has = has || (there && of == kind);
    });
  }
  return has;
}

// Each task of the cycle waits for the next one, and for the reason that is given. Of a group those
// members are named that the edge is between: `alone` is the graph of the same tasks without
// groups.
void expect_waits(const TaskGraph& graph, const TaskGraph& alone,
                  const std::vector<WaitEdge>& cycle) {
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const TaskId waiting = cycle[i].task;
    const TaskId waited = cycle[(i + 1) % cycle.size()].task;
    const bool in_line = cycle[i].kind == EdgeKind::Queue || cycle[i].kind == EdgeKind::Stream;
    EXPECT_TRUE(in_line ? on_one_stream(graph, waited, waiting)
                        : has_edge(graph, waited, waiting, cycle[i].kind))
        << "wait " << i << ", " << word_of(cycle[i].kind);
    EXPECT_EQ(graph.start(cycle[i].waited), graph.start(waited)) << "wait " << i;
    if (in_line || cycle[i].kind == EdgeKind::Issue) continue;
    EXPECT_TRUE(has_edge(alone, cycle[i].waited, waiting, cycle[i].kind))
        << "wait " << i << ", " << word_of(cycle[i].kind) << ", is of other members";
  }
}

void erase_groups(Lowered& lowered) {
  for (StepList& list : lowered.ranks) {
    std::vector<Step> steps(list.begin(), list.end());
    for (Step& step : steps) step.group = Group::Alone;
    list = StepList(std::move(steps));
  }
}

// Every third computation joins the one before it.
void fuse_computations(Lowered& lowered, std::mt19937& random) {
  for (StepList& list : lowered.ranks) {
    std::vector<Step> steps(list.begin(), list.end());
    for (std::size_t at = 0; at + 1 < steps.size(); ++at) {
      if (random() % 3 > 0) continue;
      steps[at].group = Group::Opens;
      steps[++at].group = Group::Continues;
    }
    list = StepList(std::move(steps));
  }
}

struct Tally {
  std::size_t finishing = 0;
  std::map<std::size_t, std::size_t> cycles;  // counted by length

  void compare(const TaskGraph& graph, const TaskGraph& alone, int round) {
    const Execution execution = execute(graph);
    const auto expected = shortest_by_all_distances(graph);
    const auto cycle = shortest_cycle(graph, execution);
    ASSERT_EQ(execution.finishes(), !expected) << round;
    ASSERT_EQ(cycle.size(), expected.value_or(0)) << round;
    expect_waits(graph, alone, cycle);
    // However little of it is looked at, what is given is a cycle.
    const auto hasty = shortest_cycle(graph, execution, 0);
    ASSERT_EQ(hasty.empty(), !expected) << round;
    expect_waits(graph, alone, hasty);
    if (expected) {
      ++cycles[*expected];
    } else {
      ++finishing;
    }
  }
  void print(const char* what) const {
    std::printf("%s: %zu finish;", what, finishing);
    for (const auto& [length, count] : cycles) std::printf(" %zu cycles of %zu", count, length);
    std::printf("\n");
  }
};

// No receive comes behind its reader and no send before its maker: there is no fault but waiting.
Tally compare_random_transfers(bool fuse, int rounds) {
  std::mt19937 random(7);
  Tally tally;
  for (int round = 0; round < rounds && !::testing::Test::HasFatalFailure(); ++round) {
    const Schedule schedule = random_schedule({.ranks = 2 + round % 2,
                                               .chunks = 1 + round / 2 % 2,
                                               .microbatches = 1 + round % 3,
                                               .topology = static_cast<Topology>(1 + round % 3)},
                                              random);
    const StageMap map(schedule);
    Lowered lowered = add_transfers(schedule, map, schedule.microbatches.value()).lowered;
    shuffle_transfers(lowered, random, fuse);
    const Environment environment{.communicators = static_cast<Communicators>(round % 3),
                                  .transfers = static_cast<TransferMode>(round / 3 % 2)};
    Lowered apart = lowered;
    erase_groups(apart);
    tally.compare(wired(schedule, std::move(lowered), environment).graph,
                  wired(schedule, std::move(apart), environment).graph, round);
  }
  return tally;
}

TEST(ShortestCycle, IsTheShortestAmongRandomTransfers) {
  const Tally tally = compare_random_transfers(false, 400);
  tally.print("random transfers");
  EXPECT_GE(tally.cycles.size(), 3U);
}

const std::vector<CollectiveGroup> kCrossed{
    {.name = "all", .members = {0, 1, 2}, .actions = {Kind::Unshard}},
    {.name = "two", .members = {1, 2}, .actions = {Kind::ReduceGradient}}};

// A cycle goes through the point where a collective's members meet, and is never of it.
TEST(ShortestCycle, ThroughACollectiveNamesItsMembers) {
  const Wired made = wired(
      "ranks 3\nmicrobatches 1\n"
      "rank 0: unshard1 F1.0 B1.0\nrank 1: unshard1 reduce1 F1.0 B1.0\n"
      "rank 2: reduce1 unshard1 F1.0 B1.0\n",
      {}, kCrossed);
  for (const std::uint64_t work : {std::uint64_t{0}, std::uint64_t{10'000'000}}) {
    const auto cycle = shortest_cycle(made.graph, execute(made.graph), work);
    ASSERT_EQ(cycle.size(), 4U) << work;
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const Task& task = made.graph.tasks[cycle[i].task];
      const Task& waited = made.graph.tasks[cycle[i].waited];
      EXPECT_EQ(cycle[i].waited, cycle[(i + 1) % cycle.size()].task) << work;
      EXPECT_EQ(cycle[i].kind == EdgeKind::Collective, task.rank != waited.rank) << work;
      EXPECT_EQ(cycle[i].kind == EdgeKind::Collective, task.kind == waited.kind) << work;
    }
  }
}

// Two collectives in one group each wait for their own kind.
TEST(ShortestCycle, OfAGroupOfCollectivesNamesTheOneThatWaits) {
  const std::vector<CollectiveGroup> both{
      {.name = "u", .members = {0, 1}, .actions = {Kind::Unshard}},
      {.name = "r", .members = {0, 1}, .actions = {Kind::ReduceGradient}}};
  const Wired made = wired(
      "ranks 2\nmicrobatches 1\nchunks 2\n"
      "rank 0: F1.0 B1.0 F2.0 B2.0 (unshard1 reduce1) (unshard2 reduce2)\n"
      "rank 1: F1.0 B1.0 F2.0 B2.0 unshard1 unshard2 reduce1 reduce2\n",
      {}, both);
  EXPECT_EQ(cycle_of(made), (Lines{"0:reduce1 (collective)", "1:reduce1 (stream)",
                                   "1:unshard2 (collective)", "0:unshard2 (stream)"}));
}

// F1.0 of rank 0 waits for something that nobody makes, and so does all of the cycle behind it.
TEST(ShortestCycle, IsFoundBehindWhatNobodyMakes) {
  const Wired made = wired(
      "ranks 3\nmicrobatches 1\nplacement chain\n"
      "rank 0: recv-F1.0 F1.0 send-F1.0 unshard1 B1.0\n"
      "rank 1: recv-F1.0 F1.0 unshard1 reduce1 B1.0\n"
      "rank 2: F1.0 B1.0 reduce1 unshard1\n",
      {}, kCrossed);
  EXPECT_FALSE(cycle_of(made).empty());
}

// Rank 0's group stands in both queues: from one of them to the other there are two waits, so that
// the circle is recv-F2.0, send-F2.0, B2.0, recv-B2.0, send-F1.0 and the group.
TEST(ShortestCycle, FromOneQueueOfAFusedGroupToAnotherAreTwoSteps) {
  const Wired made = wired(
      "ranks 2\nmicrobatches 1\nplacement v\n"
      "rank 0: F1.0 recv-F2.0 F2.0 B2.0 (recv-B1.0 send-B2.0) B1.0 send-F1.0\n"
      "rank 1: recv-F1.0 F1.0 F2.0 recv-B2.0 B2.0 send-F2.0 B1.0 send-B1.0\n",
      {.communicators = Communicators::PerEdge});
  EXPECT_EQ(shortest_by_all_distances(made.graph), 6U);
  EXPECT_EQ(cycle_of(made).size(), 6U);
}

TEST(ShortestCycle, IsTheShortestAmongFusedGroups) {
  const Tally tally = compare_random_transfers(true, 400);
  tally.print("random transfers in groups");
  EXPECT_GE(tally.cycles.size(), 3U);
}

Tally compare_random_computations(bool fuse, int rounds) {
  std::mt19937 random(8);
  Tally tally;
  for (int round = 0; round < rounds && !::testing::Test::HasFatalFailure(); ++round) {
    Schedule schedule = random_schedule({.ranks = 2 + round % 3,
                                         .chunks = 1 + round % 2,
                                         .microbatches = 1 + round % 5,
                                         .topology = static_cast<Topology>(1 + round % 3),
                                         .delay = round % 4 == 3 ? Delay::Always : Delay::Never},
                                        random);
    for (RankOrder& rank : schedule.ranks) {
      for (std::size_t swaps = random() % 4; swaps > 0; --swaps) {
        Entry& one = rank.order[random() % rank.order.size()];
        Entry& other = rank.order[random() % rank.order.size()];
        // Across kinds most cycles would be of one rank alone.
        if (one.kind == other.kind || swaps == 3) std::swap(one, other);
      }
    }
    const StageMap map(schedule);
    const Lowered apart = as_written(schedule);
    Lowered lowered = apart;
    if (fuse) fuse_computations(lowered, random);
    tally.compare(wire_directly(lowered, map, schedule.microbatches.value()),
                  wire_directly(apart, map, schedule.microbatches.value()), round);
  }
  return tally;
}

TEST(ShortestCycle, IsTheShortestAmongRandomOrdersOfComputations) {
  const Tally tally = compare_random_computations(false, 600);
  tally.print("random orders");
  EXPECT_GE(tally.cycles.size(), 3U);
}

TEST(ShortestCycle, IsTheShortestAmongComposites) {
  const Tally tally = compare_random_computations(true, 600);
  tally.print("random orders in composites");
  EXPECT_GE(tally.cycles.size(), 3U);
}

// The composite waits since B1.0 does, which is not its first member.
TEST(ShortestCycle, NamesTheMemberOfACompositeThatWaits) {
  EXPECT_EQ(cycle_of(wired_directly("ranks 2\nmicrobatches 2\nplacement chain\n"
                                    "rank 0: F1.0 (F1.1 B1.0) B1.1\n"
                                    "rank 1: F1.0 F1.1 B1.0 B1.1\n")),
            (Lines{"0:B1.0 (data)", "1:B1.0 (stream)", "1:F1.1 (data)"}));
}

TEST(ShortestCycle, GivesTheSameForTheSame) {
  const std::string text =
      "ranks 3\nmicrobatches 2\nplacement chain\n"
      "rank 0: F1.0 B1.0 F1.1 B1.1\n"
      "rank 1: F1.1 F1.0 B1.0 B1.1\n"
      "rank 2: F1.1 F1.0 B1.0 B1.1\n";
  EXPECT_EQ(cycle_of(wired_directly(text)), cycle_of(wired_directly(text)));
}

}  // namespace
}  // namespace capo
