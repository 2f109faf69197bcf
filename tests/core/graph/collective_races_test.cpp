// Collectives of one group on two streams of a member: ordered by data, by events, or not at all.

#include "core/graph/build.h"
#include "core/graph/execution.h"
#include "core/graph/meetings.h"
#include "tests/core/graph/graph_text.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace capo {
namespace {

using testing_support::read_schedule;
using testing_support::task_name;

using Lines = std::vector<std::string>;

struct Wired {
  Lowered lowered;
  WiredTransfers made;
  std::vector<CollectiveGroup> groups;

  // "dp: 0:reduce1, 0:unshard2"
  [[nodiscard]] Lines races() const {
    Lines lines;
    for (const CollectiveRace& race : collective_races(made.graph, groups)) {
      lines.push_back(groups[race.group].name + ": " +
                      task_name(made.graph, lowered, race.earlier) + ", " +
                      task_name(made.graph, lowered, race.later));
    }
    return lines;
  }
};

Wired wired(const std::string& rank_0, const std::string& rank_1,
            std::vector<CollectiveGroup> groups) {
  const Schedule schedule = read_schedule("ranks 2\nmicrobatches 2\nchunks 2\nrank 0: " + rank_0 +
                                          "\nrank 1: " + rank_1 + "\n");
  Wired result{.lowered = testing_support::own(as_written(schedule)),
               .made = {},
               .groups = std::move(groups)};
  result.made = wire_transfers(result.lowered, StageMap(schedule), 2, {}, result.groups);
  EXPECT_TRUE(execute(result.made.graph).finishes());
  return result;
}

// Unshards run on a stream of their own, reductions on the default one.
CollectiveGroup two_streams() {
  return {.name = "dp",
          .members = {0, 1},
          .actions = {Kind::Unshard, Kind::ReduceGradient},
          .streams = {{Kind::Unshard, "gather"}}};
}

TEST(CollectiveRaces, OnOneStreamThereAreNone) {
  CollectiveGroup group = two_streams();
  group.streams.clear();
  EXPECT_EQ(wired("reduce1 unshard2", "reduce1 unshard2", {group}).races(), Lines{});
}

// One finding for a group: its first member that does not order them.
TEST(CollectiveRaces, OnTwoStreamsWithNothingBetweenThemEitherMayBeFirst) {
  EXPECT_EQ(wired("reduce1 unshard2", "reduce1 unshard2", {two_streams()}).races(),
            Lines{"dp: 0:reduce1, 0:unshard2"});
}

// The unshard is there before F1.0, which is over before the reduction.
TEST(CollectiveRaces, DataBetweenThemOrdersThem) {
  EXPECT_EQ(
      wired("unshard1 F1.0 B1.0 reduce1", "unshard1 F1.0 B1.0 reduce1", {two_streams()}).races(),
      Lines{});
}

// On rank 1 nothing reads what is unsharded before the reduction.
TEST(CollectiveRaces, OneMemberMayOrderWhatAnotherDoesNot) {
  EXPECT_EQ(
      wired("unshard1 F1.0 B1.0 reduce1", "F1.0 B1.0 unshard1 reduce1", {two_streams()}).races(),
      Lines{"dp: 1:unshard1, 1:reduce1"});
}

TEST(CollectiveRaces, TheFirstOneIsReported) {
  EXPECT_EQ(wired("reduce1 unshard2 reduce2", "reduce1 unshard2 reduce2", {two_streams()}).races(),
            Lines{"dp: 0:reduce1, 0:unshard2"});
}

TEST(CollectiveRaces, AGroupOfOneHasNobodyToDisagreeWith) {
  CollectiveGroup alone = two_streams();
  alone.members = {0};
  EXPECT_EQ(wired("reduce1 unshard2", "F1.0", {alone}).races(), Lines{});
}

// Collectives of different groups need no order.
TEST(CollectiveRaces, EachGroupIsLookedAtByItself) {
  std::vector<CollectiveGroup> groups{two_streams(), two_streams()};
  groups[0].actions = {Kind::Unshard};
  groups[1].name = "other";
  groups[1].actions = {Kind::ReduceGradient};
  EXPECT_EQ(wired("reduce1 unshard2", "reduce1 unshard2", groups).races(), Lines{});
}

// The event of a microbatch orders a dispatch and its combine over two streams; two microbatches
// have two events.
TEST(CollectiveRaces, EventsOrderTheExchangesOfOneMicrobatchOnly) {
  const CollectiveGroup experts{
      .name = "experts",
      .members = {0, 1},
      .actions = {Kind::DispatchForward, Kind::CombineForward},
      .streams = {{Kind::DispatchForward, "there"}, {Kind::CombineForward, "back"}}};
  const std::string one = "F1.0 dispatch-F1.0 F1.0 combine-F1.0";
  EXPECT_EQ(wired(one, one, {experts}).races(), Lines{});
  const std::string two_layers = one + " F1.0 dispatch-F1.0 F1.0 combine-F1.0";
  EXPECT_EQ(wired(two_layers, two_layers, {experts}).races(), Lines{});
  const std::string two =
      "F1.0 dispatch-F1.0 F1.0 F1.1 combine-F1.0 dispatch-F1.1 F1.1 combine-F1.1";
  EXPECT_EQ(wired(two, two, {experts}).races(), Lines{"experts: 0:combine-F1.0, 0:dispatch-F1.1"});
}

bool reaches(const TaskGraph& graph, Vertex from, Vertex to) {
  std::set<Vertex> seen{from};
  std::vector<Vertex> open{from};
  while (!open.empty()) {
    const Vertex vertex = open.back();
    open.pop_back();
    if (vertex == to) return true;
    graph.edges.for_each_out(vertex, [&](Vertex next, EdgeKind) {
      if (seen.insert(next).second) open.push_back(next);
    });
  }
  return false;
}

using Pair = std::pair<TaskId, TaskId>;

// The first two neighbours of any member without a way from the end of one to the start of the
// next.
std::optional<Pair> race_by_reachability(const TaskGraph& graph) {
  for (std::size_t rank = 0; rank + 1 < graph.first_of.size(); ++rank) {
    TaskId earlier = kNoTask;
    for (TaskId id = graph.first_of[rank]; id < graph.first_of[rank + 1]; ++id) {
      if (!graph.tasks[id].split) continue;
      if (earlier != kNoTask && !reaches(graph, graph.end(earlier), graph.start(id)))
        return Pair(earlier, id);
      earlier = id;
    }
  }
  return std::nullopt;
}

// Two ranks with the same random order of computations and collectives over two chunks.
TEST(CollectiveRaces, AreWhereNoWayLeadsFromOneToTheNext) {
  std::mt19937 random(5);
  std::size_t racing = 0;
  std::size_t ordered = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<std::string> actions{"F1.0", "F1.1", "F2.0", "unshard1", "unshard2", "reduce1"};
    for (std::size_t i = actions.size(); i > 1; --i)
      std::swap(actions[i - 1], actions[random() % i]);
    std::string order;
    for (const std::string& action : actions) order += action + " ";
    const Wired made = wired(order, order, {two_streams()});
    std::optional<Pair> found;
    for (const CollectiveRace& race : collective_races(made.made.graph, made.groups)) {
      EXPECT_FALSE(found);
      found = Pair(race.earlier, race.later);
    }
    EXPECT_EQ(found, race_by_reachability(made.made.graph)) << order;
    ++(found ? racing : ordered);
  }
  std::printf("%zu random orders race, %zu do not\n", racing, ordered);
  EXPECT_GT(racing, 10U);
  EXPECT_GT(ordered, 10U);
}

}  // namespace
}  // namespace capo
