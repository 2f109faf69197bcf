// Programs, op by op, of steps small enough to be written out; larger ones are
// program_laws_test.cpp's.

#include "run/execute/program.h"
#include "tests/run/execute/program_words.h"
#include "tests/run/running.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace capo::run {
namespace {

using Lines = std::vector<std::string>;

Lines lines(const std::string& statements, const PlanOptions& options = {},
            const Environment& environment = {}) {
  return Launched(statements, options, environment).words().lines();
}

TEST(Program, OfATeListRunsInItsOrderOnOneStream) {
  const Launched launched(typed("[1, 2, -2, -2.5, 1, -1, 2, -2, -2.5, -1]").schedule);
  EXPECT_EQ(
      launched.words().lines(),
      (Lines{"0: F1.0 from given 1.0", "0: F2.0 from given 2.0",
             "0: B2.0 from given 2.0, collect grad input of 2.0 at 2.0", "0: W2.0",
             "0: F1.1 from given 1.1", "0: B1.0 from given 1.0, collect grad input of 1.0 at 1.0",
             "0: F2.1 from given 2.1", "0: B2.1 from given 2.1, collect grad input of 2.1 at 2.1",
             "0: W2.1", "0: B1.1 from given 1.1, collect grad input of 1.1 at 1.1"}));
  EXPECT_EQ(launched.program.rank_of_stream, (std::vector<std::int32_t>{0}));
  EXPECT_TRUE(launched.program.exchanges.empty());
}

// A chunk reads what the last layer of chunk 1 made, or what the first layer of chunk 2 handed
// back.
TEST(Program, OfAChainOnOneRankReadsTheNeighboursBuffers) {
  EXPECT_EQ(
      lines("ranks 1\nmicrobatches 1\nplacement chain\nlayers 2,1\n"
            "rank 0: F1.0 F2.0 B2.0 B1.0\n"),
      (Lines{"0: F1.0 from given 1.0", "0: F2.0 from output of 1.0.1", "0: B2.0 from given 2.0",
             "0: B1.0 from grad input of 2.0, collect grad input of 1.0.0 at 1.0"}));
}

TEST(Program, OfAChunkWithoutLayersGivesNothingOut) {
  EXPECT_EQ(lines("ranks 1\nmicrobatches 1\nlayers 0,1\nrank 0: F1.0 F2.0 B2.0 B1.0\n"),
            (Lines{"0: F1.0 from given 1.0", "0: F2.0 from given 2.0",
                   "0: B2.0 from given 2.0, collect grad input of 2.0 at 2.0",
                   "0: B1.0 from given 1.0"}));
}

// Members of a composite are one op.
TEST(Program, WhatRunsTogetherIsLaunchedTogether) {
  EXPECT_EQ(lines("ranks 1\nmicrobatches 2\nrank 0: F1.0 (F1.1 B1.0) B1.1\n"),
            (Lines{"0: F1.0 from given 1.0",
                   "0: F1.1 from given 1.1, B1.0 from given 1.0, collect grad input of 1.0 at 1.0",
                   "0: B1.1 from given 1.1, collect grad input of 1.1 at 1.1"}));
}

// The only work of its composite has nothing beside it.
TEST(Program, WhatOpensACompositeNeedNotBeWork) {
  EXPECT_EQ(
      lines("ranks 1\nmicrobatches 2\nrank 0: (unshard1 F1.0) B1.0 (unshard1 F1.1) B1.1\n"),
      (Lines{"0: F1.0 from given 1.0", "0: B1.0 from given 1.0, collect grad input of 1.0 at 1.0",
             "0: F1.1 from given 1.1",
             "0: B1.1 from given 1.1, collect grad input of 1.1 at 1.1"}));
}

// Ranks are streams 0 and 2, their transfers 1 and 3; a transfer begins and
// finishes on each. Whichever finishes first has both sides, and delivers; the other waits for it.
TEST(Program, TwoRanksMakeATransferOnce) {
  const Launched launched(
      "ranks 2\nmicrobatches 1\nplacement chain\n"
      "rank 0: F1.0 send-F1.0 recv-B1.0 B1.0\nrank 1: recv-F1.0 F1.0 B1.0 send-B1.0\n");
  EXPECT_EQ(launched.words().lines(),
            (Lines{"0: 0:F1.0 from given 0:1.0",                        // 0
                   "3: receive at 1:1.0",                               // recv-F starts
                   "1: send output of 0:1.0 to 1:1.0; after 0",         // send-F starts
                   "1: deliver output of 0:1.0 to 1:1.0; after 1",      // and ends
                   "3: delivered to 1:1.0; after 2 3",                  // recv-F ends
                   "1: receive at 0:1.0; after 0",                      // recv-B starts
                   "2: 1:F1.0 from landing 1:1.0; after 4",             // 6
                   "2: 1:B1.0 from given 1:1.0",                        // 7
                   "3: send grad input of 1:1.0 to 0:1.0; after 7",     // send-B starts
                   "1: deliver grad input of 1:1.0 to 0:1.0; after 8",  // recv-B ends
                   "3: delivered to 0:1.0; after 5 9",                  // send-B ends
                   "0: 0:B1.0 from landing 0:1.0, collect grad input of 0:1.0 at 0:1.0; after 9"}));
  EXPECT_EQ(launched.program.rank_of_stream, (std::vector<std::int32_t>{0, 0, 1, 1}));
}

// Then it does not wait for the receiver, whose landing place is there all the time.
TEST(Program, ABufferedSendCopiesWithoutItsReceive) {
  const Lines all = lines(
      "ranks 2\nmicrobatches 1\nplacement chain\n"
      "rank 0: F1.0 send-F1.0 recv-B1.0 B1.0\nrank 1: recv-F1.0 F1.0 B1.0 send-B1.0\n",
      {}, {.transfers = TransferMode::Buffered});
  EXPECT_EQ(all[3], "1: deliver output of 0:1.0 to 1:1.0");
}

TEST(Program, AWeightGradientOnItsOwnStreamWaitsForItsBackward) {
  EXPECT_EQ(
      lines("ranks 1\nmicrobatches 2\nrank 0: F1.0 F1.1 B1.0 W1.0 B1.1 W1.1\n", {},
            {.weight_stream = true}),
      (Lines{"0: F1.0 from given 1.0", "0: F1.1 from given 1.1",
             "0: B1.0 from given 1.0, collect grad input of 1.0 at 1.0", "1: W1.0; after 2",
             "0: B1.1 from given 1.1, collect grad input of 1.1 at 1.1", "1: W1.1; after 4"}));
}

const char* const kRace = "ranks 1\nmicrobatches 2\nrank 0: F1.0 F1.1 B1.0 W1.0 B1.1 W1.1\n";

constexpr MemoryUser kBackward0{.rank = 0, .entry = 2, .kind = Kind::Backward};
constexpr MemoryUser kWeight0{.rank = 0, .entry = 3, .kind = Kind::BackwardWeight};
constexpr MemoryUser kBackward1{.rank = 0, .entry = 4, .kind = Kind::Backward};

TEST(Program, AForcedWriterIsLaunchedBeforeItsReader) {
  const Launched launched(testing_support::read_schedule(kRace), {}, {.weight_stream = true}, {},
                          {{kBackward1, kWeight0}});
  EXPECT_EQ(launched.words().lines(),
            (Lines{"0: F1.0 from given 1.0", "0: F1.1 from given 1.1",
                   "0: B1.0 from given 1.0, collect grad input of 1.0 at 1.0",
                   "0: B1.1 from given 1.1, collect grad input of 1.1 at 1.1", "1: W1.0; after 2 3",
                   "1: W1.1; after 3"}));
}

// Ops that are launched one by one run so: otherwise only the forced edge would keep the other
// rank.
TEST(Program, WhereAnEdgeIsForcedEachOpWaitsForTheOneBeforeIt) {
  const char* const ranks =
      "ranks 2\nmicrobatches 2\nrank 0: F1.0 F1.1 B1.0 W1.0 B1.1 W1.1\n"
      "rank 1: F1.0 F1.1 B1.0 B1.1\n";
  const Launched launched(testing_support::read_schedule(ranks), {}, {.weight_stream = true}, {},
                          {{kBackward1, kWeight0}});
  const Program& program = launched.program;
  ASSERT_EQ(program.ops.size(), 10U);
  for (std::uint32_t op = 1; op < program.ops.size(); ++op) {
    if (program.ops[op].stream == program.ops[op - 1].stream) continue;
    const auto& waits = program.waits[op];
    EXPECT_EQ(std::count(waits.begin(), waits.end(), op - 1), 1) << op;
  }
}

TEST(Program, ForcedEdgesThatCloseACircleGiveNothing) {
  const testing_support::PlannedStep step(testing_support::read_schedule(kRace), {}, {},
                                          {.weight_stream = true});
  EXPECT_FALSE(program_of(step.table(), step.course(), {{kWeight0, kBackward0}}));
  EXPECT_FALSE(
      program_of(step.table(), step.course(), {{kBackward1, kWeight0}, {kWeight0, kBackward1}}));
  EXPECT_TRUE(program_of(step.table(), step.course(), {{kWeight0, kBackward1}}));
}

TEST(Program, WhatIsForcedBeforeItselfIsLeftAsItIs) {
  const Launched launched(testing_support::read_schedule(kRace), {}, {.weight_stream = true}, {},
                          {{kWeight0, kWeight0}});
  EXPECT_EQ(launched.words().lines(), lines(kRace, {}, {.weight_stream = true}));
}

// The send of a chunk's gradient is over when the next chunk of the model has had its backward.
TEST(Program, WhatAModelChunkHandsOnIsCollectedBehindTheNextOne) {
  const Launched launched(
      "ranks 1\nmicrobatches 2\nrank 0: F1.0 F2.0 F1.1 F2.1 B2.0 B1.0 B2.1 "
      "B1.1\n",
      {.model_chunks = {1, 1}});
  const ProgramWords words = launched.words();
  EXPECT_EQ(words.acts_of(4), (Lines{"B2.0 from given 2.0"}));
  EXPECT_EQ(words.acts_of(5), (Lines{"B1.0 from given 1.0", "collect grad input of 2.0 at 2.0"}));
  EXPECT_EQ(words.acts_of(6), (Lines{"B2.1 from given 2.1", "collect grad input of 1.0 at 1.0"}));
  EXPECT_EQ(words.acts_of(7), (Lines{"B1.1 from given 1.1", "collect grad input of 2.1 at 2.1",
                                     "collect grad input of 1.1 at 1.1"}));
}

// Only its own stream waits for the work of a rank.
TEST(Program, WhatIsHandedOnLastIsCollectedOnItsOwnStream) {
  const Launched launched(
      "ranks 2\nmicrobatches 1\nrank 0: F1.0 F2.0 B2.0 B1.0\nrank 1: F1.0 F2.0 B2.0 B1.0\n",
      {.model_chunks = {1, 1}});
  for (const Op& op : launched.program.ops) {
    for (std::uint32_t part = op.first_part; part < op.end_part; ++part) {
      EXPECT_EQ(launched.program.parts[part].rank, launched.program.rank_of_stream[op.stream]);
    }
  }
  const ProgramWords words = launched.words();
  const auto both = [](std::string rank) {
    return Lines{rank + ":B1.0 from given " + rank + ":1.0",
                 "collect grad input of " + rank + ":2.0 at " + rank + ":2.0",
                 "collect grad input of " + rank + ":1.0 at " + rank + ":1.0"};
  };
  EXPECT_EQ(words.acts_of(6), both("0"));
  EXPECT_EQ(words.acts_of(7), both("1"));
}

// The step ends behind all streams of a rank: an op of its own waits for the other one.
TEST(Program, WhatIsHandedOnLastIsCollectedBehindAllStreamsOfItsRank) {
  const Launched launched(testing_support::read_schedule(
                              "ranks 1\nmicrobatches 1\nrank 0: F1.0 B1.0 W1.0 F2.0 B2.0 W2.0\n"),
                          {.model_chunks = {2}}, {.weight_stream = true});
  const Lines all = launched.words().lines();
  ASSERT_EQ(all.size(), 7U);
  EXPECT_EQ(all[5], "1: W2.0; after 4");
  EXPECT_EQ(all[6], "0: collect grad input of 1.0 at 1.0; after 5");
}

// Chunks 3 and 1 are the first layers of the two; 4 and 2 hand on within.
TEST(Program, OnlyTheFirstLayerOfAModelChunkHandsOn) {
  const Launched launched(
      "ranks 1\nmicrobatches 1\nrank 0: F1.0 F2.0 F3.0 F4.0 B4.0 B3.0 B2.0 B1.0\n",
      {.model_chunks = {2, 2}});
  const ProgramWords words = launched.words();
  EXPECT_EQ(words.acts_of(4), (Lines{"B4.0 from given 4.0", "collect grad input of 4.0 at 4.0"}));
  EXPECT_EQ(words.acts_of(5), (Lines{"B3.0 from given 3.0"}));
  EXPECT_EQ(words.acts_of(6), (Lines{"B2.0 from given 2.0", "collect grad input of 2.0 at 2.0"}));
  EXPECT_EQ(words.acts_of(7), (Lines{"B1.0 from given 1.0", "collect grad input of 3.0 at 3.0",
                                     "collect grad input of 1.0 at 1.0"}));
}

std::vector<CollectiveGroup> experts(std::vector<std::int32_t> members) {
  return {{.name = "ep",
           .members = std::move(members),
           .actions = {Kind::DispatchForward, Kind::CombineForward, Kind::DispatchBackward,
                       Kind::CombineBackward}}};
}

Launched exchanging(const std::string& order) {
  return Launched("ranks 1\nmicrobatches 1\nrank 0: " + order + "\n", {}, {}, experts({0}));
}

TEST(Program, RowsGoToExpertsAndComeBackBeforeTheyAreRead) {
  const Launched launched =
      exchanging("dispatch-F1.0 combine-F1.0 F1.0 dispatch-B1.0 combine-B1.0 B1.0");
  EXPECT_EQ(launched.words().parts(),
            (Lines{"permute given 1.0 into exchange 0", "return exchange 0", "F1.0 from exchange 0",
                   "permute given 1.0 into exchange 1", "return exchange 1", "B1.0 from exchange 1",
                   "collect grad input of 1.0 at 1.0"}));
  ASSERT_EQ(launched.program.exchanges.size(), 2U);
  EXPECT_EQ(launched.program.exchanges[0].way, Way::Forward);
  EXPECT_EQ(launched.program.exchanges[1].way, Way::Backward);
  EXPECT_EQ(launched.program.exchanges[0].rows, Exchange::Rows::Read);
  EXPECT_EQ(launched.program.exchanges[1].rows, Exchange::Rows::Read);
}

TEST(Program, WhatComesBackBehindALayerIsItsOutput) {
  const Launched launched = exchanging("F1.0 dispatch-F1.0 combine-F1.0 B1.0");
  EXPECT_EQ(launched.words().parts(),
            (Lines{"F1.0 from given 1.0", "permute output of 1.0 into exchange 0",
                   "return exchange 0 into output of 1.0", "B1.0 from given 1.0",
                   "collect grad input of 1.0 at 1.0"}));
  ASSERT_EQ(launched.program.exchanges.size(), 1U);
  EXPECT_EQ(launched.program.exchanges[0].rows, Exchange::Rows::Output);
}

// Dispatched and not combined: the layer is what its experts do.
TEST(Program, ALayerMayReadWhatIsStillWithItsExperts) {
  const Lines parts = exchanging("dispatch-F1.0 F1.0 B1.0").words().parts();
  EXPECT_EQ(parts, (Lines{"permute given 1.0 into exchange 0", "F1.0 from within exchange 0",
                          "B1.0 from given 1.0", "collect grad input of 1.0 at 1.0"}));
}

// Results of experts go back into their own place, where the next reader finds it; a gradient that
// leaves the step goes back after it was collected.
TEST(Program, WhatExpertsMadeComesBack) {
  const Lines parts =
      exchanging("dispatch-F1.0 F1.0 combine-F1.0 combine-B1.0 B1.0 dispatch-B1.0").words().parts();
  EXPECT_EQ(parts, (Lines{"permute given 1.0 into exchange 0", "F1.0 from within exchange 0",
                          "return exchange 0 into output of 1.0",
                          "permute given 1.0 into exchange 1", "B1.0 from within exchange 1",
                          "collect grad input of 1.0 at 1.0", "return exchange 1"}));
}

// Readers of what experts made wait for the way back, and gradients have the way of their rows.
TEST(Program, ReadersWaitForExperts) {
  const Launched launched(
      "ranks 1\nmicrobatches 1\nplacement loop\nrank 0: F1.0 dispatch-F2.0 F2.0 combine-F2.0 F3.0 "
      "B3.0 combine-B2.0 B2.0 dispatch-B2.0 B1.0\n",
      {}, {}, experts({0}));
  const Lines parts = launched.words().parts();
  const auto at = [&](const std::string& part) {
    return std::find(parts.begin(), parts.end(), part);
  };
  ASSERT_NE(at("F3.0 from output of 2.0"), parts.end());
  ASSERT_NE(at("B1.0 from grad input of 2.0"), parts.end());
  EXPECT_LT(at("return exchange 0 into output of 2.0"), at("F3.0 from output of 2.0"));
  EXPECT_LT(at("return exchange 1 into grad input of 2.0"), at("B1.0 from grad input of 2.0"));
  ASSERT_EQ(launched.program.exchanges.size(), 2U);
  EXPECT_EQ(launched.program.exchanges[1].route, 0U);
  EXPECT_EQ(launched.program.exchanges[1].rows, Exchange::Rows::Experts);
  // They wait whatever the streams do.
  const Clocks clocks(launched.program);
  const auto op_with = [&](const std::string& part) {
    for (std::uint32_t op = 0; op < launched.program.ops.size(); ++op) {
      const Lines acts = launched.words().acts_of(op);
      if (std::find(acts.begin(), acts.end(), part) != acts.end()) return op;
    }
    return kNoOp;
  };
  EXPECT_TRUE(clocks.before(op_with("F2.0 from within exchange 0"),
                            op_with("return exchange 0 into output of 2.0")));
  EXPECT_TRUE(clocks.before(op_with("return exchange 0 into output of 2.0"),
                            op_with("F3.0 from output of 2.0")));
  EXPECT_TRUE(clocks.before(op_with("return exchange 1 into grad input of 2.0"),
                            op_with("B1.0 from grad input of 2.0")));
}

// A dispatch permutes before its rows cross, a combine behind that, each on its own rank.
TEST(Program, RowsOfSeveralRanksCrossWhereTheseMeet) {
  const Launched launched(
      "ranks 2\nmicrobatches 1\nrank 0: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n"
      "rank 1: dispatch-F1.0 combine-F1.0 F1.0 B1.0\n",
      {}, {}, experts({0, 1}));
  const Program& program = launched.program;
  const Lines parts = launched.words().parts();
  ASSERT_EQ(program.exchanges.size(), 2U);
  const std::uint32_t of_second = program.exchanges[0].rows == Exchange::Rows::Output ? 1 : 0;
  EXPECT_EQ(program.exchanges[1 - of_second].among, program.exchanges[of_second].among);
  ASSERT_EQ(program.crossings.size(), 2U);
  for (const Crossing& crossing : program.crossings) {
    EXPECT_EQ(crossing.ranks, (std::vector<std::int32_t>{0, 1}));
  }
  EXPECT_EQ(program.crossings[0].out.size(), 2U);
  EXPECT_EQ(program.crossings[1].back, program.crossings[0].out);
  const auto at = [&](const std::string& words) {
    return std::find_if(parts.begin(), parts.end(),
                        [&](const std::string& part) { return part.starts_with(words); });
  };
  const auto out = at("cross, exchange 1 out, exchange 0 out");
  const auto back = at("cross, exchange 1 back, exchange 0 back");
  EXPECT_LT(at("permute output of 0:1.0 into exchange 1"), out);
  EXPECT_LT(at("permute given 1:1.0 into exchange 0"), out);
  EXPECT_LT(out, back);
  ASSERT_NE(back, parts.end());
  EXPECT_NE(at("return exchange 1 into output of 0:1.0"), parts.end());
  EXPECT_NE(at("return exchange 0"), parts.end());
  EXPECT_LT(back, at("return exchange 1 into output of 0:1.0"));
  EXPECT_LT(back, at("return exchange 0"));
  EXPECT_LT(at("return exchange 0"), at("1:F1.0 from exchange 0"));
}

TEST(Program, RowsOfOneRankDoNotCross) {
  const Launched launched(
      "ranks 2\nmicrobatches 1\nrank 0: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n"
      "rank 1: F1.0 B1.0\n",
      {}, {}, experts({0}));
  EXPECT_TRUE(launched.program.crossings.empty());
}

TEST(Cells, AreNumberedRankByRankChunkByChunk) {
  const testing_support::PlannedStep step(testing_support::read_schedule(
      "ranks 3\nmicrobatches 2\nrank 0: F1.0 B1.0 F1.1 B1.1\n"
      "rank 1: F1.0 F2.0 F3.0 F1.1 F2.1 F3.1 B3.0 B2.0 B1.0 B3.1 B2.1 B1.1\n"
      "rank 2: F1.0 B1.0 F1.1 B1.1\n"));
  const Cells cells(step.table());
  EXPECT_EQ(cells.count(), 2U * (1 + 3 + 1));
  std::uint32_t next = 0;
  for (const auto& [rank, chunks] : {std::pair{0, 1}, std::pair{1, 3}, std::pair{2, 1}}) {
    for (std::int32_t chunk = 1; chunk <= chunks; ++chunk) {
      for (std::int32_t microbatch = 0; microbatch < 2; ++microbatch) {
        EXPECT_EQ(cells.of(rank, chunk, microbatch), next);
        const Cells::Cell cell = cells.at(next++);
        EXPECT_EQ(cell.rank, rank);
        EXPECT_EQ(cell.chunk, chunk);
        EXPECT_EQ(cell.microbatch, microbatch);
      }
    }
  }
}

}  // namespace
}  // namespace capo::run
