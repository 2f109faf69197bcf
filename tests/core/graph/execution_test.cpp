// Running a task graph on paper: what runs, what stays stuck, and that looser transfers never get
// stuck where stricter ones finish. The shortest cycle is shortest_cycle_test.cpp's subject.

#include "core/graph/execution.h"
#include "core/graph/lowered.h"
#include "tests/core/graph/random_lowering.h"
#include "tests/core/graph/random_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <utility>

namespace capo {
namespace {

using testing_support::cycle_of;
using testing_support::Lines;
using testing_support::random_schedule;
using testing_support::shuffle_transfers;
using testing_support::task_name;
using testing_support::Wired;
using testing_support::wired;
using testing_support::wired_directly;

// Returns the tasks that never run.
Lines stuck_in(const Wired& made) {
  const Execution execution = execute(made.graph);
  Lines lines;
  for (TaskId id = 0; id < made.graph.tasks.size(); ++id) {
    if (!execution.ran[made.graph.end(id)])
      lines.push_back(task_name(made.graph, made.lowered, id));
  }
  return lines;
}

TEST(Execution, OfAnEmptyGraphIsOver) {
  EXPECT_TRUE(execute(TaskGraph{}).finishes());
  EXPECT_TRUE(shortest_cycle(TaskGraph{}, execute(TaskGraph{})).empty());
}

TEST(Execution, RunsEverythingThatCanStart) {
  const Wired made = wired(
      "ranks 2\nmicrobatches 1\nplacement chain\n"
      "rank 0: F1.0 send-F1.0 recv-B1.0 B1.0\n"
      "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0\n");
  const Execution execution = execute(made.graph);
  EXPECT_TRUE(execution.finishes());
  EXPECT_EQ(std::count(execution.ran.begin(), execution.ran.end(), true), 12);
  EXPECT_EQ(cycle_of(made), Lines{});
}

TEST(Execution, LeavesTheStuckStateBehind) {
  const Wired made = wired_directly(
      "ranks 2\nmicrobatches 2\nplacement chain\n"
      "rank 0: F1.0 B1.0 F1.1 B1.1\n"
      "rank 1: F1.1 F1.0 B1.0 B1.1\n");
  EXPECT_EQ(execute(made.graph).stuck, 7U);
  EXPECT_EQ(stuck_in(made),
            (Lines{"0:B1.0", "0:F1.1", "0:B1.1", "1:F1.1", "1:F1.0", "1:B1.0", "1:B1.1"}));
}

// A start can be over although the end never is.
TEST(Execution, ATransferThatWaitsHasStarted) {
  const Wired made = wired(
      "ranks 2\nmicrobatches 1\nplacement chain\nchunks 1\n"
      "rank 0: F1.0 send-F1.0 recv-B1.0 B1.0\n"
      "rank 1: F1.0 B1.0 send-B1.0 recv-F1.0\n");
  const Execution execution = execute(made.graph);
  const TaskId send = 1;
  EXPECT_TRUE(execution.ran[made.graph.start(send)]);
  EXPECT_FALSE(execution.ran[made.graph.end(send)]);
}

TEST(Execution, WhatWaitsForNothingThatIsMadeIsNoCycle) {
  const Wired made = wired(
      "ranks 2\nmicrobatches 1\nplacement chain\nchunks 1\n"
      "rank 0: F1.0\n"
      "rank 1: recv-F1.0 F1.0\n");
  EXPECT_EQ(stuck_in(made), (Lines{"1:recv-F1.0", "1:F1.0"}));
  EXPECT_EQ(cycle_of(made), Lines{});
}

// From one layout to the next queues are only taken away, and from one mode to the next waits.
TEST(Execution, WhatFinishesUnderTheStricterFinishesUnderTheLooser) {
  std::mt19937 random(12);
  std::size_t strictest = 0;
  std::size_t loosest = 0;
  for (int round = 0; round < 300; ++round) {
    const Schedule schedule = random_schedule(
        {.ranks = 2 + round % 3, .chunks = 1 + round % 2, .microbatches = 1 + round % 3}, random);
    Lowered lowered =
        add_transfers(schedule, StageMap(schedule), schedule.microbatches.value()).lowered;
    shuffle_transfers(lowered, random, round % 2 == 0);
    bool finishes[2][3];
    for (int mode = 0; mode < 2; ++mode) {
      for (int layout = 0; layout < 3; ++layout) {
        const Environment environment{.communicators = static_cast<Communicators>(layout),
                                      .transfers = static_cast<TransferMode>(mode)};
        finishes[mode][layout] = execute(wired(schedule, lowered, environment).graph).finishes();
        EXPECT_TRUE(mode == 0 || finishes[1][layout] || !finishes[0][layout]) << round;
        EXPECT_TRUE(layout == 0 || finishes[mode][layout] || !finishes[mode][layout - 1]) << round;
      }
    }
    strictest += finishes[0][0] ? 1 : 0;
    loosest += finishes[1][2] ? 1 : 0;
  }
  std::printf("of 300 random schedules %zu finish under the strictest, %zu under the loosest\n",
              strictest, loosest);
  EXPECT_LT(strictest, loosest);
}

}  // namespace
}  // namespace capo
