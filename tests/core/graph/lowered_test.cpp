// Orders as they are issued, and back to a schedule.

#include "core/graph/lowered.h"
#include "core/text/order_text.h"
#include "tests/core/graph/order_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace capo {
namespace {

using testing_support::lines_of;
using testing_support::read_schedule;

using Lines = std::vector<std::string>;

const char* const kPlain =
    "ranks 2\nmicrobatches 2\nplacement chain\n"
    "rank 0: F1.0 F1.1 . B1.0 B1.1\n"
    "rank 1: . F1.0 (F1.1 B1.0) B1.1 reduce1\n";

TEST(MixedGroup, HoldsSendsAndReceivesWhereverTheyStand) {
  const auto mixed = [](const std::string& order, std::uint32_t at) {
    const Schedule schedule = read_schedule("rank 0: " + order + "\n");
    const Lowered lowered = as_written(schedule);
    return in_mixed_group(lowered.ranks[0], at);
  };
  for (const std::uint32_t at : {0U, 1U, 2U}) {
    EXPECT_TRUE(mixed("(recv-B1.0 recv-B1.1 send-F1.0) send-F1.1", at)) << at;
    EXPECT_TRUE(mixed("(send-F1.0 send-F1.1 recv-B1.0)", at)) << at;
  }
  EXPECT_FALSE(mixed("(recv-B1.0 recv-B1.1 send-F1.0) send-F1.1", 3));
  EXPECT_FALSE(mixed("(recv-B1.0 recv-B1.1) send-F1.0", 1));
  EXPECT_FALSE(mixed("(send-F1.0 send-F1.1) recv-B1.0", 0));
}

TEST(Lowered, AsWrittenIsTheEntriesWithoutIdleSlots) {
  const Schedule schedule = read_schedule(kPlain);
  const Lowered lowered = as_written(schedule);
  EXPECT_EQ(lines_of(lowered), (Lines{"F1.0 F1.1 B1.0 B1.1", "F1.0 (F1.1 B1.0) B1.1 reduce1"}));
  EXPECT_EQ(lowered.ranks[0][2].entry, 3U);
  EXPECT_EQ(lowered.ranks[1][0].entry, 1U);
}

// Ten million entries are an ordinary input, and are not copied.
TEST(Lowered, AsWrittenLooksAtTheOrderUnlessItHoldsIdleSlots) {
  Schedule schedule = read_schedule(kPlain);
  schedule.ranks[0].order.erase(schedule.ranks[0].order.begin() + 2);
  const Lowered lowered = as_written(schedule);
  for (RankOrder& rank : schedule.ranks) rank.order.back().microbatch = 7;
  EXPECT_EQ(lines_of(lowered), (Lines{"F1.0 F1.1 B1.0 B1.7", "F1.0 (F1.1 B1.0) B1.1 reduce1"}));
  EXPECT_EQ(lowered.ranks[0][2].entry, 2U);
}

TEST(Lowered, AnOrderHoldsTransfersOrNone) {
  EXPECT_FALSE(has_transfers(read_schedule(kPlain)));
  EXPECT_TRUE(
      has_transfers(read_schedule("ranks 2\nmicrobatches 1\nplacement chain\nchunks 1\nrank 0: "
                                  "F1.0\nrank 1: recv-F1.0 F1.0\n")));
  EXPECT_FALSE(has_transfers(Schedule{}));
}

TEST(Lowered, WhatAKindIsFollowsFromWhatItDoes) {
  for (const Kind kind : {Kind::SendForward, Kind::SendBackward}) {
    EXPECT_TRUE(is_send(kind) && is_transfer(kind) && !is_receive(kind) && !is_backward(kind));
  }
  for (const Kind kind : {Kind::ReceiveForward, Kind::ReceiveBackward}) {
    EXPECT_TRUE(is_receive(kind) && is_transfer(kind) && !is_send(kind) && !is_backward(kind));
  }
  for (const Kind kind : {Kind::Backward, Kind::BackwardInput}) EXPECT_TRUE(is_backward(kind));
  for (const Kind kind : {Kind::Forward, Kind::BackwardWeight, Kind::DispatchForward,
                          Kind::ReduceGradient, Kind::Idle}) {
    EXPECT_FALSE(is_transfer(kind) || is_backward(kind) || is_wait(kind));
  }
  for (const Kind kind : {Kind::WaitSendForward, Kind::WaitSendBackward}) {
    EXPECT_TRUE(is_send_wait(kind) && is_wait(kind) && has_microbatch(kind));
    EXPECT_FALSE(is_transfer(kind) || is_compute(kind) || is_exchange(kind));
  }
  EXPECT_TRUE(is_wait(Kind::WaitReduceGradient));
  EXPECT_FALSE(is_send_wait(Kind::WaitReduceGradient) || has_microbatch(Kind::WaitReduceGradient));
}

TEST(Lowered, ASoundScheduleIsItselfAgain) {
  const Schedule schedule = read_schedule(kPlain);
  const Schedule again = to_schedule(as_written(schedule), schedule);
  EXPECT_EQ(print_order_file(again),
            "capo 1\nranks 2\nmicrobatches 2\nplacement chain\n"
            "rank 0: F1.0 F1.1 B1.0 B1.1\n"
            "rank 1: F1.0 (F1.1 B1.0) B1.1 reduce1\n");
}

// A transfer that was put in stands where the entry was written that it was made for.
TEST(Lowered, WhatWasPutInHasTheSpanOfTheEntryThatItWasMadeFor) {
  const Schedule schedule =
      read_schedule("ranks 2\nmicrobatches 1\nplacement chain\nrank 0: F1 B1\nrank 1: F1 B1\n");
  const Schedule made =
      to_schedule(add_transfers(schedule, StageMap(schedule), 1).lowered, schedule);
  EXPECT_EQ(made.naming, Naming::Named);
  EXPECT_EQ(print_order_file(made),
            "capo 1\nranks 2\nmicrobatches 1\nplacement chain\n"
            "rank 0: F1.0 send-F1.0 recv-B1.0 B1.0\n"
            "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0\n");
  const auto& from = schedule.ranks[0].order;
  const auto& to = made.ranks[0].order;
  ASSERT_EQ(to.size(), 4U);
  EXPECT_EQ(to[1].span(), from[0].span());
  EXPECT_EQ(to[2].span(), from[1].span());
}

TEST(Lowered, AResetStandsBehindWhatWasMadeForTheEntriesInFrontOfIt) {
  const Schedule schedule = read_schedule(
      "ranks 2\nmicrobatches 1\nplacement chain\nrank 0: reset2 F1 reset3 B1\n"
      "rank 1: F1 B1 reset\n");
  const Schedule made =
      to_schedule(add_transfers(schedule, StageMap(schedule), 1).lowered, schedule);
  EXPECT_EQ(print_order_file(made),
            "capo 1\nranks 2\nmicrobatches 1\nplacement chain\n"
            "rank 0: reset2 F1.0 send-F1.0 reset3 recv-B1.0 B1.0\n"
            "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0 reset\n");
}

}  // namespace
}  // namespace capo
