// The thirteen slots of one step with the overlap of expert-parallel communication, as Megatron
// launches them, and what the task graph makes of their streams and events.

#include "core/frameworks/megatron/ep_overlap.h"
#include "core/graph/build.h"
#include "core/graph/execution.h"
#include "tests/core/graph/order_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace capo {
namespace {

using testing_support::read_schedule;

using Lines = std::vector<std::string>;

constexpr EpOverlap kEverything{.multi_token_prediction = true, .delayed_weights = true};
constexpr EpOverlap kReleasedEarly{
    .multi_token_prediction = true, .early_release = true, .delayed_weights = true};

bool is_weight(const Step& step) {
  return step.kind == Kind::BackwardWeight;
}

bool is_forward_side(const Step& step) {
  return step.kind == Kind::Forward || step.kind == Kind::DispatchForward ||
         step.kind == Kind::CombineForward;
}

// "f dispatch", "b pre-dispatch", "b experts W".
std::string node_name(const Step& step) {
  constexpr const char* kParts[] = {"whole", "pre-dispatch", "experts", "post-process"};
  const bool dispatch = step.kind == Kind::DispatchForward || step.kind == Kind::DispatchBackward;
  const std::string part = !is_exchange(step.kind) ? kParts[static_cast<int>(step.part)]
                           : dispatch              ? "dispatch"
                                                   : "combine";
  return (is_forward_side(step) ? "f " : "b ") + part + (is_weight(step) ? " W" : "");
}

// One rank, one chunk: a forward, a step of F1.1 and B1.0 side by side, a backward.
class Wired {
 public:
  Wired(const EpOverlap& options, std::int32_t layers) {
    const Schedule schedule = read_schedule(
        "ranks 1\nmicrobatches 2\nplacement loop\n"
        "rank 0: F1.0 (F1.1 B1.0) B1.1\n");
    lowered_ = take_layers_apart(as_written(schedule), {{layers}}, options);
    graph = wire_transfers(lowered_, StageMap(schedule), 2, {}).graph;
  }

  [[nodiscard]] Step step_of(TaskId task) const {
    return lowered_.ranks[0][graph.tasks[task].step];
  }
  // "comm" for exchanges; what computes has the stream that is called comp here.
  [[nodiscard]] std::string stream_of(TaskId task) const {
    const Stream& stream = graph.streams[graph.tasks[task].stream];
    return stream.runs == Stream::Runs::Computations ? "comp" : stream.name;
  }
  // The tasks directly before, and why.
  [[nodiscard]] std::vector<std::pair<TaskId, EdgeKind>> before(TaskId task) const {
    std::vector<std::pair<TaskId, EdgeKind>> found;
    for (Vertex from = 0; from < graph.task_of.size(); ++from) {
      graph.edges.for_each_out(from, [&](Vertex to, EdgeKind kind) {
        if (to == graph.start(task)) found.emplace_back(graph.task_of[from], kind);
      });
    }
    return found;
  }
  [[nodiscard]] bool reaches(TaskId from, TaskId to) const {
    std::set<TaskId> behind{to};
    std::vector<TaskId> open{to};
    while (!open.empty()) {
      const TaskId task = open.back();
      open.pop_back();
      for (const auto& [earlier, kind] : before(task)) {
        if (behind.insert(earlier).second) open.push_back(earlier);
      }
    }
    return behind.contains(from);
  }

  TaskGraph graph;

 private:
  Lowered lowered_;
};

// Of the first forward layer beside the last backward layer, a line for each slot: its node, its
// stream, the microbatch whose event it waits for and records, and the slots that it comes directly
// behind.
Lines table(const EpOverlap& options, std::int32_t layers) {
  const Wired step(options, layers);
  Lines lines;
  for (TaskId task = 0; task < step.graph.tasks.size(); ++task) {
    const Step& node = step.step_of(task);
    if (node.slot == 0 || node.layer != (is_forward_side(node) ? 0 : layers - 1)) continue;
    std::string behind;
    for (const auto& [earlier, kind] : step.before(task)) {
      const char* why = kind == EdgeKind::Stream  ? "stream"
                        : kind == EdgeKind::Event ? "event"
                                                  : "data";
      const int slot = step.step_of(earlier).slot;
      behind += fmt::format(", {} {}", why, slot == 0 ? "before" : std::to_string(slot));
    }
    const std::string event =
        is_weight(node) ? "none" : fmt::format("{}.{}", node.chunk, node.microbatch);
    lines.push_back(fmt::format("{:2} {:<16} {}  {:<4}  {}", node.slot, node_name(node),
                                step.stream_of(task), event, behind.substr(2)));
  }
  return lines;
}

TEST(EpOverlap, LaunchesAStepInThirteenSlots) {
  EXPECT_EQ(table(kEverything, 2), (Lines{
                                       " 1 b post-process   comp  1.0   stream before, data before",
                                       " 2 b combine        comm  1.0   stream before, event 1",
                                       " 3 f pre-dispatch   comp  1.1   stream 1",
                                       " 4 b experts        comp  1.0   event 2, stream 3",
                                       " 5 f dispatch       comm  1.1   stream 2, event 3",
                                       " 6 b experts W      comp  none  stream 4",
                                       " 7 b dispatch       comm  1.0   event 4, stream 5",
                                       " 9 f experts        comp  1.1   event 5, stream 6",
                                       "10 f combine        comm  1.1   stream 7, event 9",
                                       "11 b pre-dispatch   comp  1.0   event 7, stream 9",
                                       "12 f post-process   comp  1.1   event 10, stream 11",
                                       "13 b pre-dispatch W comp  none  stream 12",
                                   }));
}

TEST(EpOverlap, ReleasesTheAttentionsMemoryEarlyInSlotEight) {
  EXPECT_EQ(table(kReleasedEarly, 2),
            (Lines{
                " 1 b post-process   comp  1.0   stream before, data before",
                " 2 b combine        comm  1.0   stream before, event 1",
                " 3 f pre-dispatch   comp  1.1   stream 1",
                " 4 b experts        comp  1.0   event 2, stream 3",
                " 5 f dispatch       comm  1.1   stream 2, event 3",
                " 6 b experts W      comp  none  stream 4",
                " 7 b dispatch       comm  1.0   event 4, stream 5",
                " 8 b pre-dispatch   comp  1.0   stream 6, event 7",
                " 9 f experts        comp  1.1   event 5, stream 8",
                "10 f combine        comm  1.1   stream 7, event 9",
                "12 f post-process   comp  1.1   stream 9, event 10",
                "13 b pre-dispatch W comp  none  stream 12",
            }));
}

// Without multi-token prediction slots 1 and 12 are empty, without delayed weights 6 and 13.
TEST(EpOverlap, LeavesSlotsEmptyThatAreNotAskedFor) {
  EXPECT_EQ(table({}, 2), (Lines{
                              " 2 b combine        comm  1.0   stream before",
                              " 3 f pre-dispatch   comp  1.1   stream before",
                              " 4 b experts        comp  1.0   event 2, stream 3",
                              " 5 f dispatch       comm  1.1   stream 2, event 3",
                              " 7 b dispatch       comm  1.0   event 4, stream 5",
                              " 9 f experts        comp  1.1   stream 4, event 5",
                              "10 f combine        comm  1.1   stream 7, event 9",
                              "11 b pre-dispatch   comp  1.0   event 7, stream 9",
                          }));
}

TEST(EpOverlap, LeavesTheLastWeightOfTheFirstLayerToTheEndOfTheStep) {
  const Lines single = table(kEverything, 1);
  ASSERT_EQ(single.size(), 11U);
  EXPECT_EQ(single.back().substr(0, 2), "12");
}

// --- the order of launch over several layers -----------------------------------------------------

// "f0 pre-dispatch" with the layer, "|" before a node of another step: all nodes of rank 0.
std::string launched(const std::string& order, std::vector<std::int32_t> layers,
                     const EpOverlap& options) {
  const Schedule schedule =
      read_schedule("ranks 1\nmicrobatches 2\nplacement loop\nrank 0: " + order + "\n");
  const Lowered apart = take_layers_apart(as_written(schedule), {std::move(layers)}, options);
  std::string text;
  for (const Step& step : apart.ranks[0]) {
    std::string name = node_name(step);
    name.insert(1, std::to_string(step.layer));
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

TEST(EpOverlap, AForwardAscendsThroughItsLayersAndABackwardDescends) {
  EXPECT_EQ(launched("F1.0 B1.0", {2}, {.delayed_weights = true}),
            "f0 pre-dispatch, f0 dispatch, f0 experts, f0 combine, "
            "f1 pre-dispatch, f1 dispatch, f1 experts, f1 combine, "
            "b1 combine, b1 experts, b1 experts W, b1 dispatch, b1 pre-dispatch, "
            "b1 pre-dispatch W, "
            "b0 combine, b0 experts, b0 experts W, b0 dispatch, b0 pre-dispatch, "
            "b0 pre-dispatch W");
}

// One layer forward, two backward: the first pair side by side, the other backward alone.
TEST(EpOverlap, WhatTheBackwardHasMoreRunsBehindThePairs) {
  EXPECT_EQ(launched("(F1.0 B2.0)", {1, 2}, {.delayed_weights = true}),
            "b1 combine, f0 pre-dispatch, b1 experts, f0 dispatch, b1 experts W, b1 dispatch, "
            "f0 experts, f0 combine, b1 pre-dispatch, b1 pre-dispatch W, "
            "b0 combine, b0 experts, b0 experts W, b0 dispatch, b0 pre-dispatch, "
            "b0 pre-dispatch W");
}

// Two layers forward, one backward: its last weight waits for all forwards.
TEST(EpOverlap, WhatTheForwardHasMoreRunsBeforeTheLastWeight) {
  EXPECT_EQ(launched("(F1.0 B2.0)", {2, 1}, {.delayed_weights = true}),
            "b0 combine, f0 pre-dispatch, b0 experts, f0 dispatch, b0 experts W, b0 dispatch, "
            "f0 experts, f0 combine, b0 pre-dispatch, "
            "f1 pre-dispatch, f1 dispatch, f1 experts, f1 combine, "
            "b0 pre-dispatch W");
}

TEST(EpOverlap, TransfersKeepTheirPlace) {
  const Schedule schedule = read_schedule(
      "ranks 2\nmicrobatches 1\nplacement chain\n"
      "rank 0: F1.0 send-F1.0 recv-B1.0 B1.0\n"
      "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0\n");
  const Lowered apart = take_layers_apart(as_written(schedule), {{1}, {1}}, {});
  EXPECT_EQ(testing_support::lines_of(apart),
            (Lines{"F1.0 dispatch-F1.0 F1.0 combine-F1.0 send-F1.0 "
                   "recv-B1.0 combine-B1.0 B1.0 dispatch-B1.0 B1.0",
                   "recv-F1.0 F1.0 dispatch-F1.0 F1.0 combine-F1.0 "
                   "combine-B1.0 B1.0 dispatch-B1.0 B1.0 send-B1.0"}));
}

// --- laws of the graph ---------------------------------------------------------------------------

constexpr EpOverlap kAllOptions[] = {
    {},
    {.multi_token_prediction = true},
    {.delayed_weights = true},
    {.early_release = true, .delayed_weights = true},
    kEverything,
    kReleasedEarly,
};

TEST(EpOverlap, NoExchangeComesDirectlyBehindTheWeightLaunchedBeforeIt) {
  std::size_t exchanges = 0;
  for (const EpOverlap& options : kAllOptions) {
    for (std::int32_t layers = 1; layers <= 4; ++layers) {
      const Wired step(options, layers);
      for (TaskId task = 0; task < step.graph.tasks.size(); ++task) {
        if (!is_exchange(step.step_of(task).kind)) continue;
        ++exchanges;
        for (const auto& [earlier, kind] : step.before(task))
          EXPECT_FALSE(is_weight(step.step_of(earlier)));
      }
    }
  }
  std::printf("%zu exchanges, none directly behind a weight gradient\n", exchanges);
  EXPECT_GT(exchanges, 300U);
}

// The weight gradient of the experts runs beside the dispatch that is launched behind it.
TEST(EpOverlap, TheDispatchOfSlotSevenDoesNotWaitForTheWeightOfSlotSix) {
  std::size_t pairs = 0;
  for (const EpOverlap& options : kAllOptions) {
    if (!options.delayed_weights) continue;
    for (std::int32_t layers = 1; layers <= 4; ++layers) {
      const Wired step(options, layers);
      for (TaskId weight = 0; weight < step.graph.tasks.size(); ++weight) {
        if (step.step_of(weight).slot != 6) continue;
        ASSERT_EQ(step.step_of(weight + 1).slot, 7);
        EXPECT_FALSE(step.reaches(weight, weight + 1));
        ++pairs;
      }
    }
  }
  EXPECT_EQ(pairs, 40U);
}

// Through both streams, forward and backward: each node is over before the next one starts.
TEST(EpOverlap, TheNodesOfAMicrobatchFormOneChain) {
  std::size_t links = 0;
  for (const EpOverlap& options : kAllOptions) {
    for (std::int32_t layers = 1; layers <= 3; ++layers) {
      const Wired step(options, layers);
      EXPECT_TRUE(execute(step.graph).finishes());
      std::vector<TaskId> latest(2, kNoTask);
      for (TaskId task = 0; task < step.graph.tasks.size(); ++task) {
        const Step& node = step.step_of(task);
        if (is_weight(node)) continue;
        TaskId& before = latest[static_cast<std::size_t>(node.microbatch)];
        if (before != kNoTask) {
          EXPECT_TRUE(step.reaches(before, task)) << node_name(node);
          ++links;
        }
        before = task;
      }
    }
  }
  std::printf("%zu links\n", links);
}

// Forward and backward of a step are tied by the order of their streams alone.
TEST(EpOverlap, ForwardAndBackwardShareNoEvent) {
  for (const EpOverlap& options : kAllOptions) {
    const Wired step(options, 3);
    for (TaskId task = 0; task < step.graph.tasks.size(); ++task) {
      for (const auto& [earlier, kind] : step.before(task)) {
        if (kind != EdgeKind::Event) continue;
        EXPECT_EQ(step.step_of(earlier).microbatch, step.step_of(task).microbatch);
        EXPECT_FALSE(is_weight(step.step_of(earlier)) || is_weight(step.step_of(task)));
      }
    }
  }
}

// What an order that lists its layers one by one is taken apart into.
Lines listed(const std::string& order, const EpOverlap& options = {}) {
  const Schedule schedule = read_schedule("ranks 1\nmicrobatches 2\nrank 0: " + order + "\n");
  const Lowered lowered = take_listed_layers_apart(as_written(schedule), options);
  Lines lines;
  for (const Step& step : lowered.ranks.front()) {
    lines.push_back(
        fmt::format("{}{}", node_name(step), step.slot == 0 ? "" : fmt::format(" {}", step.slot)));
  }
  return lines;
}

TEST(EpOverlapOfLayers, AForwardAndTheBackwardRightBehindItShareASlotTable) {
  EXPECT_EQ(listed("F1.1 B1.0 W1.0"),
            (Lines{"b combine 2", "f pre-dispatch 3", "b experts 4", "f dispatch 5",
                   "b experts W 6", "b dispatch 7", "f experts 9", "f combine 10",
                   "b pre-dispatch 11", "b pre-dispatch W 13"}));
}

TEST(EpOverlapOfLayers, AWeightFurtherBehindKeepsItsPlace) {
  EXPECT_EQ(listed("F1.1 B1.0 F2.1 W1.0"),
            (Lines{"b combine 2", "f pre-dispatch 3", "b experts 4", "f dispatch 5", "b dispatch 7",
                   "f experts 9", "f combine 10", "b pre-dispatch 11", "f pre-dispatch",
                   "f dispatch", "f experts", "f combine", "b experts W", "b pre-dispatch W"}));
}

TEST(EpOverlapOfLayers, ABackwardIsNotPairedWithItsOwnForward) {
  EXPECT_EQ(listed("F1.0 B1.0 W1.0"), (Lines{"f pre-dispatch", "f dispatch", "f experts",
                                             "f combine", "b combine", "b experts", "b experts W",
                                             "b dispatch", "b pre-dispatch", "b pre-dispatch W"}));
}

TEST(EpOverlapOfLayers, TheGraphOfAnIdealStepFinishes) {
  const Schedule schedule = read_schedule(
      "ranks 2\nmicrobatches 2\nplacement loop\n"
      "rank 0: F1.0 F1.1 B1.0 W1.0 B1.1 W1.1\nrank 1: F1.0 B1.0 F1.1 W1.0 B1.1 W1.1\n");
  const Lowered lowered = take_listed_layers_apart(as_written(schedule), {});
  const TaskGraph graph = wire_ideally(lowered, StageMap(schedule), 2, {});
  EXPECT_TRUE(execute(graph).finishes());
  EXPECT_EQ(graph.streams.size(), 4U);  // comp and comm of each rank
}

TEST(EpOverlap, TakesACompositeApartOnlyWhereItIsAForwardAndABackward) {
  const auto one_by_one = launched("F1.0 F1.1 B1.0", {1}, {});
  EXPECT_EQ(launched("(F1.0 F1.1) B1.0", {1}, {}), one_by_one);
  EXPECT_EQ(launched("(F1.0 F1.1 B1.0)", {1}, {}), one_by_one);
  EXPECT_NE(launched("F1.0 (F1.1 B1.0)", {1}, {}), one_by_one);
}

TEST(EpOverlap, ACompositeOfOneMemberIsNoPairWithWhatComesBehindIt) {
  EXPECT_EQ(launched("F1.0 (F1.1) B1.0", {1}, {}), launched("F1.0 F1.1 B1.0", {1}, {}));
  EXPECT_EQ(launched("F1.0 B1.0 (F1.1)", {1}, {}), launched("F1.0 B1.0 F1.1", {1}, {}));
}

// What concerns neither microbatch nor layer stays one step.
TEST(EpOverlap, LeavesAReductionAsItIs) {
  EXPECT_EQ(launched("F1.0 B1.0 reduce1", {1}, {}),
            launched("F1.0 B1.0", {1}, {}) + ", " + launched("reduce1", {1}, {}));
}

TEST(EpOverlap, OfAListPairsAForwardWithTheBackwardOfAnotherMicrobatchBehindIt) {
  const auto nodes = [](const std::string& order) {
    const Schedule schedule = read_schedule("microbatches 2\nrank 0: " + order + "\n");
    const Lowered apart = take_listed_layers_apart(as_written(schedule), {});
    std::string words;
    for (const Step& step : apart.ranks.at(0)) {
      words += step.kind == Kind::Forward || step.kind == Kind::DispatchForward ||
                       step.kind == Kind::CombineForward
                   ? 'f'
               : step.kind == Kind::BackwardWeight ? 'w'
               : step.kind == Kind::ReduceGradient ? 'r'
                                                   : 'b';
    }
    return words;
  };
  const auto interleaves = [](const std::string& words) {
    return words.find("bf") != words.npos && words.find("fb") != words.npos;
  };
  EXPECT_FALSE(interleaves(nodes("F1.0 B1.0"))) << "of one microbatch";
  EXPECT_TRUE(interleaves(nodes("F1.1 B1.0")));
  EXPECT_TRUE(interleaves(nodes("F2.0 B1.0"))) << "of two chunks";
  EXPECT_FALSE(interleaves(nodes("B1.0 F1.1"))) << "the list ends with a forward";
  EXPECT_EQ(nodes("B1.0 W2.0").find('w'), nodes("B1.0").size()) << "another chunk's stays behind";
  EXPECT_EQ(nodes("B1.0 W1.1").find('w'), nodes("B1.0").size()) << "another microbatch's too";
  EXPECT_EQ(nodes("reduce1").find('r'), 0u);
  EXPECT_EQ(nodes(""), "");
}

}  // namespace
}  // namespace capo
