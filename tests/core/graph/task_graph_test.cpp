// The contents of a task graph: its layout in memory, its vertices, its streams, and every edge of
// the smallest pipeline.

#include "core/graph/build.h"
#include "core/graph/edge_list.h"
#include "tests/core/graph/graph_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace capo {
namespace {

using testing_support::edges_of;
using testing_support::read_schedule;

using Lines = std::vector<std::string>;

// Two ranks, one stage each, one microbatch, forward only.
const char* const kForward =
    "ranks 2\nmicrobatches 1\nplacement chain\n"
    "rank 0: F1.0 send-F1.0\n"
    "rank 1: recv-F1.0 F1.0\n";

struct Wired {
  Lowered lowered;
  TaskGraph graph;
};

Wired wired(const std::string& text, const Environment& environment = {},
            const std::vector<CollectiveGroup>& groups = {}) {
  const Schedule schedule = read_schedule(text);
  Wired made{.lowered = testing_support::own(as_written(schedule)), .graph = {}};
  made.graph = wire_transfers(made.lowered, StageMap(schedule), schedule.microbatches.value_or(1),
                              environment, groups)
                   .graph;
  return made;
}

// Ten million steps are an ordinary input, so their bytes are part of the design.
TEST(TaskGraph, StepsAndEdgesAreSmall) {
  EXPECT_EQ(sizeof(Step), 16U);
  EXPECT_EQ(sizeof(Vertex), 4U);
  EXPECT_EQ(sizeof(EdgeKind), 1U);
  EXPECT_EQ(sizeof(FirstEdge), 1U);
}

TEST(Numbering, TellsNumbersInPlaceAndOthers) {
  const std::vector<std::vector<std::uint32_t>> cases{{},  {0, 1, 2, 3}, {0, 1, 1, 2},
                                                      {5}, {1, 0},       {0, 2, 2, 3, 4}};
  for (const auto& numbers : cases) {
    Numbering numbering;
    for (const std::uint32_t number : numbers) numbering.push_back(number);
    ASSERT_EQ(numbering.size(), numbers.size());
    for (std::size_t at = 0; at < numbers.size(); ++at) EXPECT_EQ(numbering[at], numbers[at]);
  }
}

// Vertices, steps and streams that are not the next ones, and ranks without tasks.
TEST(TaskList, GivesBackWhatItWasGiven) {
  const std::vector<Task> given{
      {.rank = 1, .stage = 3, .microbatch = 0, .step = 0, .stream = 2, .start = 0},
      {.rank = 1, .stage = 3, .microbatch = 1, .step = 1, .stream = 4, .start = 1, .split = true},
      {.rank = 1, .stage = 4, .step = 2, .stream = 2, .start = 3, .kind = Kind::Unshard},
      {.rank = 5, .stage = 9, .microbatch = 7, .step = 3, .stream = 6, .start = 4, .member = true},
      {.rank = 5, .stage = 9, .microbatch = 8, .step = 4, .stream = 6, .start = 4, .never = true}};
  TaskList tasks;
  for (const Task& task : given) tasks.push_back(task);
  EXPECT_EQ(std::vector<Task>(tasks.begin(), tasks.end()), given);
}

TEST(TaskList, MarksATaskAlone) {
  TaskList tasks;
  for (std::uint32_t step = 0; step < 3; ++step)
    tasks.push_back({.rank = 0, .stage = 0, .step = step, .start = step});
  tasks.set_never(1);
  tasks.set_member(2);
  for (TaskId task = 0; task < 3; ++task) {
    EXPECT_EQ(tasks[task].never, task == 1);
    EXPECT_EQ(tasks[task].member, task == 2);
    EXPECT_EQ(tasks.is_member(task), task == 2);
  }
}

using Edges = std::vector<std::tuple<Vertex, Vertex, EdgeKind>>;

Edges out_of_all(const DependencyGraph& graph) {
  Edges edges;
  for (Vertex from = 0; from < graph.vertices(); ++from) {
    const std::size_t before = edges.size();
    graph.for_each_out(from, [&](Vertex to, EdgeKind kind) { edges.emplace_back(from, to, kind); });
    EXPECT_EQ(graph.out_degree(from), edges.size() - before);
  }
  return edges;
}

TEST(DependencyGraph, GivesTheEdgesOfAVertexInTheOrderOfTheirAdding) {
  std::mt19937 random(7);
  const auto below = [&](Vertex bound) { return static_cast<Vertex>(random()) % bound; };
  for (int round = 0; round < 200; ++round) {
    const Vertex vertices = 1 + below(6);
    Edges added;
    EdgeList list;
    for (Vertex edges = below(20); edges > 0; --edges) {
      const Vertex from = below(vertices);
      const Vertex to = below(3) > 0 ? (from + 1) % vertices : below(vertices);
      const auto kind = static_cast<EdgeKind>(below(10));
      added.emplace_back(from, to, kind);
      list.add(from, to, kind);
    }
    std::stable_sort(added.begin(), added.end(),
                     [](const auto& a, const auto& b) { return std::get<0>(a) < std::get<0>(b); });
    EXPECT_EQ(out_of_all(list.take_graph(vertices)), added) << round;
  }
}

TEST(TaskGraph, AnEmptyScheduleIsAnEmptyGraph) {
  const Lowered nothing;
  const TaskGraph graph = wire_transfers(nothing, StageMap(Schedule{}), 0, {}).graph;
  EXPECT_EQ(graph.tasks.size(), 0U);
  EXPECT_EQ(graph.first_of, std::vector<TaskId>{0});
  EXPECT_EQ(graph.edges.vertices(), 0U);
}

TEST(TaskGraph, HasTheseEdgesForOneForwardOverTwoRanks) {
  const Wired made = wired(kForward);
  EXPECT_EQ(edges_of(made.graph, made.lowered), (Lines{
                                                    "0:F1.0 -> 0:send-F1.0[ issue",
                                                    "0:F1.0 -> 0:send-F1.0[ data",
                                                    "0:send-F1.0[ -> 0:send-F1.0] span",
                                                    "0:send-F1.0[ -> 1:recv-F1.0] message",
                                                    "1:recv-F1.0[ -> 1:recv-F1.0] span",
                                                    "1:recv-F1.0[ -> 0:send-F1.0] rendezvous",
                                                    "1:recv-F1.0] -> 1:F1.0 data",
                                                }));
}

TEST(TaskGraph, ASendThatIsBufferedDoesNotWaitForItsReceive) {
  const Wired made = wired(kForward, {.transfers = TransferMode::Buffered});
  EXPECT_EQ(edges_of(made.graph, made.lowered, EdgeKind::Rendezvous), Lines{});
  EXPECT_EQ(edges_of(made.graph, made.lowered, EdgeKind::Message),
            Lines{"0:send-F1.0[ -> 1:recv-F1.0] message"});
}

TEST(TaskGraph, WithoutTransfersAStageReadsStraightFromTheOneBefore) {
  const Schedule schedule = read_schedule(
      "ranks 2\nmicrobatches 1\nplacement chain\ndelayed all\n"
      "rank 0: F1.0 B1.0 W1.0\n"
      "rank 1: F1.0 B1.0 W1.0\n");
  const Lowered lowered = as_written(schedule);
  EXPECT_EQ(edges_of(wire_directly(lowered, StageMap(schedule), 1), lowered),
            (Lines{
                "0:F1.0 -> 0:B1.0 stream",
                "0:F1.0 -> 0:B1.0 data",
                "0:F1.0 -> 1:F1.0 data",
                "0:B1.0 -> 0:W1.0 stream",
                "0:B1.0 -> 0:W1.0 data",
                "1:F1.0 -> 1:B1.0 stream",
                "1:F1.0 -> 1:B1.0 data",
                "1:B1.0 -> 1:W1.0 stream",
                "1:B1.0 -> 1:W1.0 data",
                "1:B1.0 -> 0:B1.0 data",
            }));
}

// Other actions of an order are left out.
TEST(TaskGraph, ExchangesInTurnRunAmongTheComputations) {
  const Schedule schedule = read_schedule(
      "ranks 2\nmicrobatches 1\nplacement chain\n"
      "rank 0: F1.0 dispatch-F1.0 send-F1.0 B1.0 reduce1\n"
      "rank 1: F1.0 B1.0\n");
  const Lowered lowered = as_written(schedule);
  const TaskGraph graph = wire_directly(lowered, StageMap(schedule), 1, Exchanges::InTurn);
  EXPECT_EQ(graph.streams.size(), 2U);
  EXPECT_EQ(edges_of(graph, lowered), (Lines{
                                          "0:F1.0 -> 0:dispatch-F1.0 stream",
                                          "0:dispatch-F1.0 -> 0:B1.0 stream",
                                          "0:dispatch-F1.0 -> 0:B1.0 data",
                                          "0:dispatch-F1.0 -> 1:F1.0 data",
                                          "1:F1.0 -> 1:B1.0 stream",
                                          "1:F1.0 -> 1:B1.0 data",
                                          "1:B1.0 -> 0:B1.0 data",
                                      }));
}

TEST(TaskGraph, AComputationIsOneVertexAndATransferTwo) {
  const TaskGraph graph = wired(kForward).graph;
  ASSERT_EQ(graph.tasks.size(), 4U);
  EXPECT_EQ(graph.first_of, (std::vector<TaskId>{0, 2, 4}));
  const std::vector<TaskId> of_vertices{0, 1, 1, 2, 2, 3};
  ASSERT_EQ(graph.task_of.size(), of_vertices.size());
  for (Vertex vertex = 0; vertex < of_vertices.size(); ++vertex)
    EXPECT_EQ(graph.task_of[vertex], of_vertices[vertex]);
  EXPECT_EQ(graph.edges.vertices(), 6U);
  const std::vector<Vertex> starts{0, 1, 3, 5};
  const std::vector<Vertex> ends{0, 2, 4, 5};
  for (TaskId task = 0; task < 4; ++task) {
    EXPECT_EQ(graph.start(task), starts[task]);
    EXPECT_EQ(graph.end(task), ends[task]);
  }
}

TEST(TaskGraph, ATaskKnowsItsStageAndItsStep) {
  const TaskGraph graph = wired(
                              "ranks 2\nmicrobatches 1\nplacement loop\n"
                              "rank 0: F1.0 . recv-F2.0 F2.0\n"
                              "rank 1: F1.0\n")
                              .graph;
  ASSERT_EQ(graph.tasks.size(), 4U);
  const Task& second = graph.tasks[2];
  EXPECT_EQ(second.rank, 0);
  EXPECT_EQ(second.stage, 2);
  EXPECT_EQ(second.microbatch, 0);
  EXPECT_EQ(second.step, 2U);  // idle slots are no steps
  EXPECT_EQ(second.kind, Kind::Forward);
}

// Rank 1 of three receives from before, sends on, receives from behind and sends back.
const char* const kMiddle =
    "ranks 3\nmicrobatches 1\nplacement chain\n"
    "rank 0: F1.0 send-F1.0 recv-B1.0 B1.0\n"
    "rank 1: recv-F1.0 F1.0 send-F1.0 recv-B1.0 B1.0 send-B1.0\n"
    "rank 2: recv-F1.0 F1.0 B1.0 send-B1.0\n";

// For each transfer of rank 1, the ranks that its communicator joins.
Lines queues_of_rank_1(Communicators layout) {
  const Wired made = wired(kMiddle, {.communicators = layout});
  Lines lines;
  for (TaskId id = made.graph.first_of[1]; id < made.graph.first_of[2]; ++id) {
    if (!made.graph.tasks[id].split) continue;
    const Stream& stream = made.graph.streams[made.graph.tasks[id].stream];
    EXPECT_EQ(stream.runs, Stream::Runs::Transfers);
    EXPECT_EQ(stream.rank, 1);
    lines.push_back(testing_support::task_name(made.graph, made.lowered, id) + ": " +
                    (stream.peer_low < 0 ? "all"
                                         : std::to_string(stream.peer_low) + "-" +
                                               std::to_string(stream.peer_high)));
  }
  return lines;
}

TEST(TaskGraph, TransfersQueueUpByRankByPairOrByEdge) {
  EXPECT_EQ(
      queues_of_rank_1(Communicators::PerRank),
      (Lines{"1:recv-F1.0: all", "1:send-F1.0: all", "1:recv-B1.0: all", "1:send-B1.0: all"}));
  EXPECT_EQ(
      queues_of_rank_1(Communicators::PerPair),
      (Lines{"1:recv-F1.0: 0-1", "1:send-F1.0: 1-2", "1:recv-B1.0: 1-2", "1:send-B1.0: 0-1"}));
  EXPECT_EQ(
      queues_of_rank_1(Communicators::PerEdge),
      (Lines{"1:recv-F1.0: 0-1", "1:send-F1.0: 1-2", "1:recv-B1.0: 2-1", "1:send-B1.0: 1-0"}));
}

TEST(TaskGraph, QueuesOrderWhatIsOnOneCommunicator) {
  const auto queued = [](Communicators layout) {
    const Wired made = wired(kMiddle, {.communicators = layout});
    Lines lines = edges_of(made.graph, made.lowered, EdgeKind::Queue);
    std::erase_if(lines, [](const std::string& line) { return line[0] != '1'; });
    return lines;
  };
  EXPECT_EQ(queued(Communicators::PerRank),
            (Lines{"1:recv-F1.0] -> 1:send-F1.0[ queue", "1:send-F1.0] -> 1:recv-B1.0[ queue",
                   "1:recv-B1.0] -> 1:send-B1.0[ queue"}));
  EXPECT_EQ(queued(Communicators::PerPair),
            (Lines{"1:recv-F1.0] -> 1:send-B1.0[ queue", "1:send-F1.0] -> 1:recv-B1.0[ queue"}));
  EXPECT_EQ(queued(Communicators::PerEdge), Lines{});
}

TEST(TaskGraph, EveryTaskIsOnAStreamOfItsRank) {
  for (const Communicators layout :
       {Communicators::PerRank, Communicators::PerPair, Communicators::PerEdge}) {
    const TaskGraph graph = wired(kMiddle, {.communicators = layout}).graph;
    for (const Task& task : graph.tasks) EXPECT_EQ(graph.streams[task.stream].rank, task.rank);
  }
}

TEST(TaskGraph, TheMembersOfAFusedGroupStartAndEndTogether) {
  const Wired made = wired(
      "ranks 3\nmicrobatches 1\nplacement chain\n"
      "rank 0: F1.0 send-F1.0 recv-B1.0 B1.0\n"
      "rank 1: recv-F1.0 F1.0 (send-F1.0 recv-B1.0) B1.0 send-B1.0\n"
      "rank 2: recv-F1.0 F1.0 B1.0 send-B1.0\n",
      {.communicators = Communicators::PerPair});
  const TaskGraph& graph = made.graph;
  const TaskId send = graph.first_of[1] + 2;
  const TaskId receive = send + 1;
  EXPECT_EQ(graph.start(send), graph.start(receive));
  EXPECT_EQ(graph.end(send), graph.end(receive));
  EXPECT_EQ(graph.end(send), graph.start(send) + 1);
  EXPECT_EQ(graph.task_of[graph.start(send)], send);
  EXPECT_EQ(graph.task_of[graph.end(receive)], send);
  // The group has one span, and no queue puts one member behind the other.
  const Lines spans = edges_of(graph, made.lowered, EdgeKind::Span);
  EXPECT_EQ(std::count(spans.begin(), spans.end(), "1:send-F1.0[ -> 1:send-F1.0] span"), 1);
  for (const std::string& line : edges_of(graph, made.lowered, EdgeKind::Queue)) {
    EXPECT_EQ(line.find("1:send-F1.0] -> 1:send-F1.0["), std::string::npos);
  }
}

TEST(TaskGraph, TheMembersOfACompositeShareAVertex) {
  const Wired made = wired(
      "ranks 1\nmicrobatches 2\nplacement chain\n"
      "rank 0: F1.0 (F1.1 B1.0) B1.1\n");
  const TaskGraph& graph = made.graph;
  EXPECT_EQ(graph.start(1), graph.start(2));
  EXPECT_EQ(graph.edges.vertices(), 3U);
  EXPECT_EQ(edges_of(graph, made.lowered), (Lines{"0:F1.0 -> 0:F1.1 stream",  //
                                                  "0:F1.0 -> 0:F1.1 data",    // B1.0 reads F1.0
                                                  "0:F1.1 -> 0:B1.1 stream",  //
                                                  "0:F1.1 -> 0:B1.1 data"}));
}

// Every edge once, as between tasks; one that is for all members names the first.
TEST(TaskGraph, AnEdgeOfAMemberSaysWhose) {
  const auto between_tasks = [](const Wired& made) {
    Lines lines;
    made.graph.for_each_task_edge([&](const TaskEdge& edge) {
      lines.push_back(testing_support::task_name(made.graph, made.lowered, edge.before) + " -> " +
                      testing_support::task_name(made.graph, made.lowered, edge.after) + " " +
                      testing_support::word_of(edge.kind));
    });
    return lines;
  };
  EXPECT_EQ(between_tasks(wired("ranks 1\nmicrobatches 2\nplacement chain\n"
                                "rank 0: F1.0 (F1.1 B1.0) B1.1\n")),
            (Lines{"0:F1.0 -> 0:F1.1 stream",  //
                   "0:F1.1 -> 0:B1.1 stream",  //
                   "0:F1.0 -> 0:B1.0 data",    //
                   "0:F1.1 -> 0:B1.1 data"}));
  // These edges join the same two vertices.
  EXPECT_EQ(between_tasks(wired("ranks 1\nmicrobatches 2\nplacement chain\n"
                                "rank 0: (F1.0 F1.1) (B1.0 B1.1)\n")),
            (Lines{"0:F1.0 -> 0:B1.0 stream",  //
                   "0:F1.0 -> 0:B1.0 data",    //
                   "0:F1.1 -> 0:B1.1 data"}));
}

// A computation between two transfers ends their group, whatever is written.
TEST(TaskGraph, AGroupHoldsTransfersOrComputationsButNotBoth) {
  const TaskGraph graph = wired(
                              "ranks 2\nmicrobatches 1\nplacement chain\n"
                              "rank 0: (F1.0 send-F1.0)\n"
                              "rank 1: (recv-F1.0 F1.0)\n")
                              .graph;
  std::set<Vertex> starts;
  for (const Task& task : graph.tasks) starts.insert(task.start);
  EXPECT_EQ(starts.size(), 4U);
}

// All members start before a point and end behind it.
TEST(TaskGraph, TheMembersOfACollectiveMeetInOnePoint) {
  const std::vector<CollectiveGroup> both{
      {.name = "dp", .members = {0, 1}, .actions = {Kind::ReduceGradient}, .streams = {}}};
  const Wired made = wired("ranks 2\nmicrobatches 1\nrank 0: reduce1\nrank 1: reduce1\n", {}, both);
  EXPECT_EQ(
      edges_of(made.graph, made.lowered, EdgeKind::Collective),
      (Lines{"0:reduce1[ -> meet:0:reduce1 collective", "1:reduce1[ -> meet:0:reduce1 collective",
             "meet:0:reduce1 -> 0:reduce1] collective",
             "meet:0:reduce1 -> 1:reduce1] collective"}));
  EXPECT_FALSE(made.graph.is_meeting(0));
  EXPECT_FALSE(made.graph.is_meeting(3));
  EXPECT_TRUE(made.graph.is_meeting(4));
  EXPECT_EQ(made.graph.streams[made.graph.tasks[0].stream].name, "dp");
}

// A collective that no declared group performs is a task of its stream like any other.
TEST(TaskGraph, AnActionOfNoGroupIsOneVertex) {
  const Wired made = wired("ranks 1\nmicrobatches 1\nrank 0: unshard1 F1.0 reduce1\n");
  EXPECT_EQ(made.graph.edges.vertices(), 3U);
  EXPECT_EQ(edges_of(made.graph, made.lowered),
            (Lines{"0:unshard1 -> 0:reduce1 stream", "0:unshard1 -> 0:F1.0 data",
                   "0:F1.0 -> 0:reduce1 data"}));
}

}  // namespace
}  // namespace capo
