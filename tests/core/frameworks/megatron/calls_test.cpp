// Megatron's calls written out, rank by rank, for the smallest configurations that show each way of
// calling; and what Megatron could not do at all.
//
//   recv-F1.0'    over the second communicator, for the way from the odd rank of two to the even
//   one recv-F1.0!    waited for at once: all computation behind it comes later send-B1.0+ waited
//   for at the next send of its kind
//   (... ...)     one fused group of transfers; or a forward and a backward that run as one step

#include "core/frameworks/megatron/calls.h"
#include "core/frameworks/megatron/orders.h"
#include "tests/core/graph/order_text.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace capo {
namespace {

using testing_support::lines_of;
using testing_support::read_schedule;

using Lines = std::vector<std::string>;
using enum MegatronCalls;

Schedule runtime_schedule(const mcore::Configuration& configuration) {
  return megatron::schedule_of(
      megatron::orders_of({.configuration = configuration, .which = megatron::Which::Runtime})
          .value());
}

Lines called(const mcore::Configuration& configuration, MegatronCalls calls) {
  const MegatronLowering made =
      lower_megatron(runtime_schedule(configuration), calls, configuration.ep_overlap);
  EXPECT_TRUE(made.faults.empty());
  return lines_of(made.lowered);
}

// --- without model chunks: warm-up, pairs, cool-down, each call waited for -----------------------

TEST(MegatronCalls, WithoutModelChunksNeighboursExchangeInPairs) {
  EXPECT_EQ(
      called({.pipeline = 3, .microbatches = 3}, Batch),
      (Lines{"F1.0 send-F1.0! F1.1 send-F1.1! F1.2 (send-F1.2! recv-B1.0!) B1.0 recv-B1.1! B1.1 "
             "recv-B1.2! B1.2",
             "recv-F1.0! F1.0 send-F1.0! recv-F1.1! F1.1 (send-F1.1! recv-B1.0!) B1.0 "
             "(send-B1.0! recv-F1.2!) F1.2 (send-F1.2! recv-B1.1!) B1.1 send-B1.1! recv-B1.2! B1.2 "
             "send-B1.2!",
             "recv-F1.0! F1.0 B1.0 (send-B1.0! recv-F1.1!) F1.1 B1.1 (send-B1.1! recv-F1.2!) F1.2 "
             "B1.2 send-B1.2!"}));
}

// --- with model chunks: PP 2, VP 2, 2 microbatches; rank 0 warms up with all four forwards -------

const mcore::Configuration kTwoByTwo{.pipeline = 2, .virtual_stages = 2, .microbatches = 2};

// After each step one group: send back, receive from before, send on, receive from behind.
TEST(MegatronCalls, BatchIsOneGroupAfterEachStep) {
  EXPECT_EQ(called(kTwoByTwo, Batch),
            (Lines{"F1.0 send-F1.0! F1.1 (recv-F2.0! send-F1.1!) F2.0 (recv-F2.1! send-F2.0!) "
                   "F2.1 send-F2.1! "
                   "recv-B2.0! B2.0 (send-B2.0! recv-B2.1!) B2.1 (send-B2.1! recv-B1.0!) B1.0 "
                   "recv-B1.1! B1.1",
                   "recv-F1.0! F1.0 (recv-F1.1! send-F1.0!) F1.1 (recv-F2.0! send-F1.1!) "
                   "F2.0 B2.0 (send-B2.0! recv-F2.1!) F2.1 B2.1 (send-B2.1! recv-B1.0!) "
                   "B1.0 (send-B1.0! recv-B1.1!) B1.1 send-B1.1!"}));
}

// In the steady state of rank 1 the receive for the next step is posted and left alone; its reader
// waits. What rank 1 sends goes over the second communicator.
TEST(MegatronCalls, OverlapPostsTheReceiveOfTheNextStep) {
  EXPECT_EQ(called(kTwoByTwo, Overlap),
            (Lines{"F1.0 send-F1.0! F1.1 send-F1.1! recv-F2.0'! F2.0 send-F2.0! recv-F2.1'! "
                   "F2.1 send-F2.1! "
                   "recv-B2.0'! B2.0 send-B2.0! recv-B2.1'! B2.1 send-B2.1! recv-B1.0'! B1.0 "
                   "recv-B1.1'! B1.1",
                   "recv-F1.0! F1.0 recv-F1.1! send-F1.0'! F1.1 recv-F2.0! send-F1.1'! "
                   "F2.0 recv-F2.1 B2.0 send-B2.0'+ F2.1 B2.1 recv-B1.0 send-B2.1'+ "
                   "B1.0 recv-B1.1! send-B1.0'! B1.1 send-B1.1'!"}));
}

// In warm-up and cool-down the receive now comes before the computation, except on the rank that
// leads: rank 0 forwards, rank 1 backwards.
TEST(MegatronCalls, FlushPostsItBeforeTheComputationInWarmUpAndCoolDown) {
  EXPECT_EQ(called(kTwoByTwo, Flush),
            (Lines{"F1.0 send-F1.0! F1.1 send-F1.1! recv-F2.0' F2.0 send-F2.0! recv-F2.1' "
                   "F2.1 send-F2.1! "
                   "recv-B2.0'! recv-B2.1' B2.0 send-B2.0+ recv-B1.0' B2.1 send-B2.1+ "
                   "recv-B1.1' B1.0 B1.1",
                   "recv-F1.0! recv-F1.1 F1.0 send-F1.0'! recv-F2.0 F1.1 send-F1.1'! "
                   "F2.0 recv-F2.1 B2.0 send-B2.0'+ F2.1 B2.1 recv-B1.0 send-B2.1'+ "
                   "B1.0 recv-B1.1 send-B1.0'+ B1.1 send-B1.1'+"}));
}

// One warm-up forward more, then forward and backward as one step, whose inputs are both there
// first. The output is freed on the stream that communicates, so no computation waits for its send.
TEST(MegatronCalls, WithEpOverlapForwardAndBackwardAreOneStep) {
  mcore::Configuration overlap = kTwoByTwo;
  overlap.ep_overlap = true;
  EXPECT_EQ(called(overlap, Batch)[1],
            "recv-F1.0! F1.0 (recv-F1.1! send-F1.0!) F1.1 (recv-F2.0! send-F1.1!) F2.0 recv-F2.1! "
            "(F2.1 B2.0) send-B2.0! B2.1 (send-B2.1! recv-B1.0!) "
            "B1.0 (send-B1.0! recv-B1.1!) B1.1 send-B1.1!");
  EXPECT_EQ(called(overlap, Overlap)[1],
            "recv-F1.0! F1.0 recv-F1.1! send-F1.0'! F1.1 recv-F2.0! send-F1.1'! F2.0 recv-F2.1! "
            "(F2.1 B2.0) send-B2.0'+ B2.1 recv-B1.0! send-B2.1'! "
            "B1.0 recv-B1.1! send-B1.0'! B1.1 send-B1.1'!");
  EXPECT_EQ(called(overlap, Flush)[1],
            "recv-F1.0! recv-F1.1 F1.0 send-F1.0' recv-F2.0 F1.1 send-F1.1' recv-F2.1 F2.0 "
            "(F2.1 B2.0) send-B2.0'+ B2.1 recv-B1.0 send-B2.1'+ "
            "B1.0 recv-B1.1 send-B1.0'+ B1.1 send-B1.1'+");
}

// Three ranks need one communicator only. Rank 1 is odd: receive from before, send on, receive from
// behind, send back; its neighbours the other way round.
TEST(MegatronCalls, EvenAndOddRanksCallInOppositeOrders) {
  const mcore::Configuration three{.pipeline = 3, .virtual_stages = 2, .microbatches = 3};
  EXPECT_EQ(called(three, Overlap),
            (Lines{"F1.0 send-F1.0! F1.1 send-F1.1! F1.2 send-F1.2! recv-F2.0! F2.0 send-F2.0! "
                   "recv-F2.1! F2.1 send-F2.1! recv-F2.2! F2.2 send-F2.2! "
                   "recv-B2.0! B2.0 send-B2.0! recv-B2.1! B2.1 send-B2.1! recv-B2.2! B2.2 "
                   "send-B2.2! recv-B1.0! B1.0 recv-B1.1! B1.1 recv-B1.2! B1.2",
                   "recv-F1.0! F1.0 recv-F1.1! send-F1.0! F1.1 recv-F1.2! send-F1.1! F1.2 "
                   "recv-F2.0! send-F1.2! F2.0 recv-F2.1! send-F2.0! F2.1 recv-F2.2! send-F2.1! "
                   "recv-B2.0 F2.2 send-F2.2! B2.0 recv-B2.1 send-B2.0+ "
                   "B2.1 recv-B2.2! send-B2.1! B2.2 recv-B1.0! send-B2.2! B1.0 recv-B1.1! "
                   "send-B1.0! B1.1 recv-B1.2! send-B1.1! B1.2 send-B1.2!",
                   "recv-F1.0! F1.0 send-F1.0! recv-F1.1! F1.1 send-F1.1! recv-F1.2! F1.2 "
                   "send-F1.2! recv-F2.0! "
                   "F2.0 recv-F2.1 B2.0 send-B2.0+ F2.1 recv-F2.2 B2.1 send-B2.1+ F2.2 B2.2 "
                   "send-B2.2+ recv-B1.0 "
                   "B1.0 send-B1.0! recv-B1.1! B1.1 send-B1.1! recv-B1.2! B1.2 send-B1.2!"}));
}

// A weight gradient keeps its place behind the entry before it.
TEST(MegatronCalls, WeightGradientsStayWhereTheyStand) {
  const Schedule schedule = read_schedule(
      "ranks 2\nmicrobatches 1\nplacement loop\nchunks 1\ndelayed all\n"
      "rank 0: F1 B1 W1\n"
      "rank 1: F1 B1 W1\n");
  EXPECT_EQ(lines_of(lower_megatron(schedule, Batch, false).lowered),
            (Lines{"F1.0 send-F1.0! recv-B1.0! B1.0 W1.0",  //
                   "recv-F1.0! F1.0 B1.0 send-B1.0! W1.0"}));
}

TEST(MegatronCalls, OneRankCallsNobody) {
  for (const MegatronCalls calls : {Batch, Overlap, Flush}) {
    EXPECT_EQ(called({.pipeline = 1, .microbatches = 2}, calls), Lines{"F1.0 B1.0 F1.1 B1.1"});
  }
}

// --- what every lowering keeps -------------------------------------------------------------------

TEST(MegatronCalls, KeepEveryEntryInItsOrderAndNameOneForEveryTransfer) {
  std::size_t steps = 0;
  for (std::int64_t pp = 2; pp <= 6; ++pp) {
    for (std::int64_t vp = 1; vp <= 3; ++vp) {
      for (const MegatronCalls calls : {Batch, Overlap, Flush}) {
        const Schedule schedule = runtime_schedule(
            {.pipeline = pp, .virtual_stages = vp, .microbatches = 2 * pp, .ep_overlap = true});
        const MegatronLowering made = lower_megatron(schedule, calls, true);
        ASSERT_TRUE(made.faults.empty());
        for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
          std::uint32_t next = 0;
          for (const Step& step : made.lowered.ranks[r]) {
            ++steps;
            ASSERT_LT(step.entry, schedule.ranks[r].order.size());
            const Entry& entry = schedule.ranks[r].order[step.entry];
            EXPECT_EQ(step.chunk, entry.chunk);
            EXPECT_EQ(step.microbatch, entry.microbatch);
            if (is_transfer(step.kind)) continue;
            EXPECT_EQ(step.entry, next++);
            EXPECT_EQ(step.kind, entry.kind);
          }
          EXPECT_EQ(next, schedule.ranks[r].order.size());
        }
      }
    }
  }
  std::printf("%zu steps, each with its entry\n", steps);
}

// --- what Megatron could not do ------------------------------------------------------------------

// "2: no input at 1" for each fault: rank, kind and entry.
Lines faults_of(const Schedule& schedule, MegatronCalls calls, bool ep_overlap = false) {
  Lines lines;
  for (const RoutingFault& fault : lower_megatron(schedule, calls, ep_overlap).faults) {
    constexpr const char* kKinds[] = {"form", "no input", "no receive", "no overlap",
                                      "own forward"};
    lines.push_back(std::to_string(fault.rank) + ": " + kKinds[static_cast<int>(fault.kind)] +
                    (fault.entry == kNoEntry ? "" : " at " + std::to_string(fault.entry)));
  }
  return lines;
}

Schedule one_rank(const std::string& order) {
  return read_schedule("ranks 1\nmicrobatches 2\nplacement loop\nchunks 2\nrank 0: " + order +
                       "\n");
}

TEST(MegatronFaults, AnOrderThatIsNotWarmUpThenPairsThenCoolDownHasNoForm) {
  // Behind the first pair a forward is due, or with none left a backward.
  EXPECT_EQ(faults_of(one_rank("F1 F2 B2 B1 F1 F2 B2 B1"), Batch), Lines{"0: form at 4"});
  EXPECT_EQ(faults_of(one_rank("F1 F2 B2 F1 F2 B1 B2 B1"), Batch), Lines{"0: form at 4"});
  EXPECT_EQ(faults_of(one_rank("F1 F1 F2 F2 B2 B2 B1"), Batch), Lines{"0: form"});
  EXPECT_EQ(faults_of(one_rank("F1 F1 F2 F2"), Batch), Lines{"0: form"});
  EXPECT_EQ(faults_of(one_rank("F1 F1 send-F1 F2 F2 B2 B2 B1 B1"), Batch), Lines{"0: form at 2"});
}

// Node by node beside its own forward a backward has nothing to read.
TEST(MegatronFaults, WhereExchangesOverlapNoBackwardRunsBesideItsOwnForward) {
  const Schedule schedule = read_schedule(
      "ranks 2\nmicrobatches 2\nplacement loop\n"
      "rank 0: F1.0 F1.1 F2.0 F2.1 B2.0 B2.1 B1.0 B1.1\n"
      "rank 1: F1.0 F1.1 F2.0 B2.0 F2.1 B2.1 B1.0 B1.1\n");
  EXPECT_EQ(faults_of(schedule, Batch), Lines{});
  EXPECT_EQ(faults_of(schedule, Batch, true), Lines{"1: own forward at 3"});
}

TEST(MegatronFaults, MicrobatchesOfAChunkAscend) {
  EXPECT_EQ(faults_of(one_rank("F1.1 F1.0 F2.0 F2.1 B2.0 B2.1 B1.0 B1.1"), Batch),
            Lines{"0: form at 0"});
  EXPECT_EQ(faults_of(one_rank("F1.0 F1.1 F2.0 F2.1 B2.1 B2.0 B1.0 B1.1"), Batch),
            Lines{"0: form at 4"});
}

// PP 3, groups of 2: chunk 2 of rank 0 is due before rank 2 can have made its input.
TEST(MegatronFaults, AGroupSmallerThanThePipelineHasNoInputForTheNextChunk) {
  const Schedule schedule =
      runtime_schedule({.pipeline = 3, .virtual_stages = 2, .microbatches = 4, .group_size = 2});
  EXPECT_EQ(faults_of(schedule, Batch), (Lines{"0: no input at 2", "2: no input at 7"}));
  EXPECT_EQ(faults_of(schedule, Overlap), (Lines{"0: no input at 2", "2: no input at 7"}));
  EXPECT_EQ(faults_of(schedule, Flush), (Lines{"0: no receive at 2", "2: no receive at 7"}));
}

// With a single chunk the last rank has no warm-up, in which the flush would have posted something.
TEST(MegatronFaults, TheFlushFindsNothingPostedOnALastRankWithoutAWarmUp) {
  const mcore::Configuration plain{.pipeline = 2, .virtual_stages = 1, .microbatches = 2};
  EXPECT_EQ(faults_of(runtime_schedule(plain), Flush), Lines{"1: no receive at 0"});
}

// The rank stops there; what it did before is kept.
TEST(MegatronFaults, ARankStopsWhereItCannotGoOn) {
  const Schedule schedule =
      runtime_schedule({.pipeline = 3, .virtual_stages = 2, .microbatches = 4, .group_size = 2});
  EXPECT_EQ(lines_of(lower_megatron(schedule, Batch, false).lowered)[0],
            "F1.0 send-F1.0! F1.1 send-F1.1!");
}

TEST(MegatronCalls, WithoutRanksThereIsNothingToCall) {
  const MegatronLowering made = lower_megatron({}, Batch, false);
  EXPECT_TRUE(made.faults.empty());
  EXPECT_TRUE(made.lowered.ranks.empty());
}

TEST(MegatronCalls, TheLastRankReceivesNoGradientOfItsLastChunk) {
  const Schedule schedule = read_schedule(
      "ranks 2\nmicrobatches 2\nplacement loop\n"
      "rank 0: F1.0 F1.1 F2.0 F2.1 B2.0 B2.1 B1.0 B1.1\n"
      "rank 1: F1.0 F1.1 F2.0 F2.1 B2.0 B2.1 B1.0 B1.1\n");
  const MegatronLowering made = lower_megatron(schedule, Batch, false);
  EXPECT_TRUE(made.faults.empty());
  EXPECT_EQ(lines_of(made.lowered).at(1).find("recv-B2.0"), std::string::npos);
}

}  // namespace
}  // namespace capo
