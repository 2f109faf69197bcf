// Lowered orders wired together: how transfers pair, what computations wait for, and every fault
// with its tasks.

#include "core/graph/build.h"
#include "core/frameworks/megatron/calls.h"
#include "core/graph/execution.h"
#include "core/graph/meetings.h"
#include "tests/core/graph/graph_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace capo {
namespace {

using testing_support::edges_of;
using testing_support::read_schedule;
using testing_support::task_name;

using Lines = std::vector<std::string>;

struct Wired {
  Lowered lowered;
  WiredTransfers made;

  [[nodiscard]] const TaskGraph& graph() const { return made.graph; }
  [[nodiscard]] bool finishes() const { return execute(made.graph).finishes(); }

  // "send without: 0:send-F1.0", with the other task behind it where there is one.
  [[nodiscard]] Lines faults() const {
    constexpr const char* kWords[] = {
        "repeated",     "nowhere",         "send without",     "receive without",
        "not received", "send too early",  "receive too late", "other communicator",
        "mismatch",     "collective order"};
    Lines lines;
    for (const TransferFault& fault : made.faults) {
      std::string line = std::string(kWords[static_cast<int>(fault.kind)]) + ": " +
                         task_name(made.graph, lowered, fault.task);
      if (fault.other != kNoTask) line += ", " + task_name(made.graph, lowered, fault.other);
      lines.push_back(line);
    }
    return lines;
  }
  // Returns the tasks that can never run, whatever else does.
  [[nodiscard]] Lines never() const {
    Lines lines;
    for (TaskId id = 0; id < made.graph.tasks.size(); ++id) {
      if (made.graph.tasks[id].never) lines.push_back(task_name(made.graph, lowered, id));
    }
    return lines;
  }
};

Wired wired(const Schedule& schedule, const Lowered& lowered, const Environment& environment = {},
            const std::vector<CollectiveGroup>& groups = {}) {
  return {.lowered = testing_support::own(lowered),
          .made = wire_transfers(lowered, StageMap(schedule), schedule.microbatches.value(),
                                 environment, groups)};
}

// A chain of two ranks with two microbatches.
Wired two_ranks(const std::string& rank_0, const std::string& rank_1,
                const Environment& environment = {}) {
  const Schedule schedule = read_schedule("ranks 2\nmicrobatches 2\nplacement chain\nchunks 1\n" +
                                          ("rank 0: " + rank_0 + "\nrank 1: " + rank_1 + "\n"));
  return wired(schedule, as_written(schedule), environment);
}

TEST(Build, AMessageIsWhatTheReceivingStageReads) {
  const auto message = [](Kind kind, std::int32_t stage) {
    return message_of({.stage = stage, .microbatch = 5, .kind = kind});
  };
  EXPECT_EQ(message(Kind::SendForward, 2), (Message{true, 3, 5}));
  EXPECT_EQ(message(Kind::ReceiveForward, 3), (Message{true, 3, 5}));
  EXPECT_EQ(message(Kind::SendBackward, 2), (Message{false, 1, 5}));
  EXPECT_EQ(message(Kind::ReceiveBackward, 1), (Message{false, 1, 5}));
}

TEST(Build, TheKthSendMeetsTheKthReceiveWhateverTheyHold) {
  const Wired made = two_ranks("F1.0 send-F1.0 F1.1 send-F1.1", "recv-F1.1 recv-F1.0 F1.1 F1.0");
  EXPECT_EQ(edges_of(made.graph(), made.lowered, EdgeKind::Message),
            (Lines{"0:send-F1.0[ -> 1:recv-F1.1] message",  //
                   "0:send-F1.1[ -> 1:recv-F1.0] message"}));
  EXPECT_EQ(made.faults(), Lines{"mismatch: 1:recv-F1.1, 0:send-F1.0"});
  EXPECT_TRUE(made.finishes()) << "wrong, but nobody waits";
}

// The first pair that disagrees is reported; those behind it follow from it.
TEST(Build, AShiftedQueueIsOneMismatch) {
  const Wired made = two_ranks("F1.0 F1.1 send-F1.1 send-F1.0 recv-B1.1 recv-B1.0 B1.0 B1.1",
                               "recv-F1.0 recv-F1.1 F1.0 F1.1 B1.0 B1.1 send-B1.0 send-B1.1");
  EXPECT_EQ(made.faults(), (Lines{"mismatch: 1:recv-F1.0, 0:send-F1.1",  //
                                  "mismatch: 0:recv-B1.1, 1:send-B1.0"}));
}

// With two ranks under `loop` activations and gradients go both ways between them.
TEST(Build, ActivationsAndGradientsToTheSameRankShareAQueue) {
  const Schedule schedule = read_schedule(
      "ranks 2\nmicrobatches 1\nplacement loop\nchunks 2\n"
      "rank 0: F1.0 send-F1.0 recv-F2.0 F2.0 send-F2.0 recv-B2.0 B2.0 send-B2.0 recv-B1.0 B1.0\n"
      "rank 1: recv-F1.0 F1.0 send-F1.0 recv-F2.0 F2.0 B2.0 send-B2.0 recv-B1.0 B1.0 send-B1.0\n");
  const Wired made = wired(schedule, as_written(schedule));
  EXPECT_EQ(made.faults(), Lines{});
  EXPECT_TRUE(made.finishes());
  EXPECT_EQ(
      edges_of(made.graph(), made.lowered, EdgeKind::Message),
      (Lines{"0:send-F1.0[ -> 1:recv-F1.0] message", "0:send-F2.0[ -> 1:recv-F2.0] message",
             "0:send-B2.0[ -> 1:recv-B1.0] message", "1:send-F1.0[ -> 0:recv-F2.0] message",
             "1:send-B2.0[ -> 0:recv-B2.0] message", "1:send-B1.0[ -> 0:recv-B1.0] message"}));
}

// Transfers on the second communicator are paired among themselves.
TEST(Build, EachCommunicatorPairsItsOwn) {
  Schedule schedule = read_schedule(
      "ranks 2\nmicrobatches 2\nplacement chain\n"
      "rank 0: F1.0 F1.1 send-F1.0 send-F1.1\n"
      "rank 1: recv-F1.1 recv-F1.0 F1.0 F1.1\n");
  Lowered lowered = as_written(schedule);
  EXPECT_EQ(wired(schedule, lowered).faults(), Lines{"mismatch: 1:recv-F1.1, 0:send-F1.0"});
  const std::array<std::size_t, 2> on_the_second{3, 0};  // by rank
  for (std::size_t rank = 0; rank < 2; ++rank) {
    StepList& list = lowered.ranks[rank];
    std::vector<Step> steps(list.begin(), list.end());
    steps[on_the_second[rank]].communicator = 1;
    list = StepList(std::move(steps));
  }
  const Wired made = wired(schedule, lowered);
  EXPECT_EQ(made.faults(), Lines{});
  EXPECT_TRUE(made.finishes());
}

// A wait stands on the stream of computations, so all that is issued behind it comes after the end
// of the send.
TEST(Build, AWrittenWaitHoldsWhatIsIssuedBehindItUntilItsSendIsOver) {
  const Wired made = two_ranks("F1.0 send-F1.0 F1.1 wait-send-F1.0 send-F1.1 wait-send-F1.1",
                               "recv-F1.0 recv-F1.1 F1.0 F1.1");
  EXPECT_EQ(edges_of(made.graph(), made.lowered, EdgeKind::Wait),
            (Lines{"0:send-F1.0] -> 0:wait-send-F1.0 wait",  //
                   "0:send-F1.1] -> 0:wait-send-F1.1 wait"}));
  const Lines issued = edges_of(made.graph(), made.lowered, EdgeKind::Issue);
  EXPECT_NE(std::find(issued.begin(), issued.end(), "0:wait-send-F1.0 -> 0:send-F1.1[ issue"),
            issued.end());
  EXPECT_TRUE(made.finishes());
}

// The receive stands behind one that waits for what rank 0 sends after its wait.
TEST(Build, AWrittenWaitCanCloseACircle) {
  const std::string receives = "recv-F1.1 recv-F1.0 F1.0 F1.1";
  const Environment per_edge{.communicators = Communicators::PerEdge};
  EXPECT_FALSE(
      two_ranks("F1.0 F1.1 wait-send-F1.0 send-F1.0 send-F1.1", receives, per_edge).finishes())
      << "its send comes behind it";
  EXPECT_TRUE(two_ranks("F1.0 send-F1.0 wait-send-F1.0 F1.1 send-F1.1",
                        "recv-F1.0 F1.0 recv-F1.1 F1.1", per_edge)
                  .finishes());
}

TEST(Build, AWaitForAReductionComesBehindItsStagesLast) {
  const Wired made = two_ranks("F1.0 reduce1 F1.1 wait-reduce1 wait-reduce1", "F1.0 F1.1");
  EXPECT_EQ(edges_of(made.graph(), made.lowered, EdgeKind::Wait),
            (Lines{"0:reduce1 -> 0:wait-reduce1 wait", "0:reduce1 -> 0:wait-reduce1 wait"}));
}

Lines waits(MegatronCalls calls) {
  const Schedule schedule = read_schedule(
      "ranks 2\nmicrobatches 2\nplacement loop\nchunks 2\n"
      "rank 0: F1 F1 F2 F2 B2 B2 B1 B1\n"
      "rank 1: F1 F1 F2 B2 F2 B2 B1 B1\n");
  const Wired made = wired(schedule, lower_megatron(schedule, calls, false).lowered);
  Lines lines = edges_of(made.graph(), made.lowered, EdgeKind::Wait);
  std::erase_if(lines, [](const std::string& line) { return line[0] == '0'; });
  return lines;
}

// Rank 1 in the steady state, F2.0 recv-F2.1 B2.0 send-B2.0+ F2.1 B2.1 recv-B1.0 send-B2.1+ B1.0:
// a backward's send is waited for when the next one is issued, before the computation behind that.
TEST(Build, ASendThatIsWaitedForAtTheNextHoldsWhatComesBehindThat) {
  EXPECT_EQ(waits(MegatronCalls::Overlap),
            (Lines{"1:recv-F1.0!] -> 1:F1.0 wait", "1:recv-F1.1!] -> 1:F1.1 wait",
                   "1:send-F1.0'!] -> 1:F1.1 wait", "1:recv-F2.0!] -> 1:F2.0 wait",
                   "1:send-F1.1'!] -> 1:F2.0 wait", "1:send-B2.0'+] -> 1:B1.0 wait",
                   "1:send-B2.1'+] -> 1:B1.1 wait", "1:recv-B1.1!] -> 1:B1.1 wait",
                   "1:send-B1.0'!] -> 1:B1.1 wait"}));
}

TEST(Build, InBatchesEveryTransferIsWaitedForAtOnce) {
  for (const std::string& line : waits(MegatronCalls::Batch))
    EXPECT_NE(line.find("!] -> "), std::string::npos) << line;
}

TEST(Build, RightTransfersHaveNoFault) {
  const Wired made = two_ranks("F1.0 send-F1.0 recv-B1.0 B1.0", "recv-F1.0 F1.0 B1.0 send-B1.0");
  EXPECT_EQ(made.faults(), Lines{});
  EXPECT_EQ(made.never(), Lines{});
  EXPECT_TRUE(made.finishes());
}

// The second transfer of the same name meets no other: it ends by itself.
TEST(Build, ARepeatedTransferIsLeftOutOfThePairing) {
  const Wired made =
      two_ranks("F1.0 send-F1.0 F1.1 send-F1.1", "recv-F1.0 F1.0 recv-F1.0 recv-F1.1 F1.1");
  EXPECT_EQ(made.faults(), Lines{"repeated: 1:recv-F1.0, 1:recv-F1.0"});
  EXPECT_EQ(made.never(), Lines{});
  EXPECT_TRUE(made.finishes());
}

TEST(Build, ATransferBeyondTheEndsOfTheModelGoesNowhere) {
  const Wired made = two_ranks("recv-F1.0 F1.0", "F1.1 send-F1.1");
  EXPECT_EQ(made.faults(),
            (Lines{"not received: 1:F1.1", "nowhere: 0:recv-F1.0", "nowhere: 1:send-F1.1"}));
  EXPECT_EQ(made.never(), (Lines{"0:recv-F1.0", "1:F1.1", "1:send-F1.1"}));
}

TEST(Build, ATransferToTheRankItselfGoesNowhere) {
  const Schedule schedule = read_schedule(
      "ranks 1\nmicrobatches 1\nplacement chain\nchunks 2\n"
      "rank 0: F1.0 send-F1.0 F2.0\n");
  EXPECT_EQ(wired(schedule, as_written(schedule)).faults(), Lines{"nowhere: 0:send-F1.0"});
}

TEST(Build, ASendThatNobodyReceivesEndsOnlyIfItIsBuffered) {
  const Wired waits = two_ranks("F1.0 send-F1.0 F1.1", "B1.0");
  EXPECT_EQ(waits.faults(), Lines{"send without: 0:send-F1.0"});
  EXPECT_EQ(waits.never(), Lines{"0:send-F1.0"});
  EXPECT_FALSE(waits.finishes());
  const Wired buffered =
      two_ranks("F1.0 send-F1.0 F1.1", "B1.0", {.transfers = TransferMode::Buffered});
  EXPECT_EQ(buffered.faults(), Lines{"send without: 0:send-F1.0"});
  EXPECT_EQ(buffered.never(), Lines{});
  EXPECT_TRUE(buffered.finishes());
}

TEST(Build, AReceiveThatNobodySendsToNeverEnds) {
  for (const TransferMode mode : {TransferMode::Rendezvous, TransferMode::Buffered}) {
    const Wired made = two_ranks("F1.0", "recv-F1.0 F1.0", {.transfers = mode});
    EXPECT_EQ(made.faults(), Lines{"receive without: 1:recv-F1.0"});
    EXPECT_EQ(made.never(), Lines{"1:recv-F1.0"});
    EXPECT_EQ(execute(made.graph()).stuck, 3U) << "the receive's start and end, and its reader";
  }
}

TEST(Build, AnInputThatNobodyReceivesIsNamedWithItsSend) {
  EXPECT_EQ(two_ranks("F1.0", "F1.0").faults(), Lines{"not received: 1:F1.0"});
  EXPECT_EQ(two_ranks("F1.0 send-F1.0", "F1.0").faults(),
            (Lines{"not received: 1:F1.0, 0:send-F1.0", "send without: 0:send-F1.0"}));
  EXPECT_EQ(two_ranks("F1.0 B1.0", "B1.0 send-B1.0").faults(),
            (Lines{"not received: 0:B1.0, 1:send-B1.0", "send without: 1:send-B1.0"}));
}

TEST(Build, ASendBeforeWhatItSendsIsTooEarly) {
  const Wired made = two_ranks("send-F1.0 F1.0", "recv-F1.0 F1.0");
  EXPECT_EQ(made.faults(), Lines{"send too early: 0:send-F1.0, 0:F1.0"});
  EXPECT_FALSE(made.finishes());
}

TEST(Build, AReceiveBehindItsReaderIsTooLate) {
  const Wired made = two_ranks("F1.0 send-F1.0", "F1.0 recv-F1.0");
  EXPECT_EQ(made.faults(), Lines{"receive too late: 1:recv-F1.0, 1:F1.0"});
  EXPECT_FALSE(made.finishes());
}

// A transfer that is a fault of its own must not shift the queue behind it.
TEST(Build, ADroppedReceiveDoesNotShiftWhatIsBehindIt) {
  const Wired made =
      two_ranks("F1.0 send-F1.0 F1.1 send-F1.1", "F1.0 recv-F1.1 F1.1",
                {.communicators = Communicators::PerEdge, .transfers = TransferMode::Buffered});
  EXPECT_EQ(made.faults(),
            (Lines{"not received: 1:F1.0, 0:send-F1.0", "send without: 0:send-F1.0"}));
  EXPECT_EQ(edges_of(made.graph(), made.lowered, EdgeKind::Message),
            Lines{"0:send-F1.1[ -> 1:recv-F1.1] message"});
}

CollectiveGroup group_of(std::vector<std::int32_t> members, std::vector<Kind> actions) {
  return {.name = "group", .members = std::move(members), .actions = std::move(actions)};
}

Wired collective(const std::string& rank_0, const std::string& rank_1,
                 const std::vector<CollectiveGroup>& groups) {
  const Schedule schedule = read_schedule("ranks 2\nmicrobatches 2\nchunks 2\nrank 0: " + rank_0 +
                                          "\nrank 1: " + rank_1 + "\n");
  return wired(schedule, as_written(schedule), {}, groups);
}

const std::vector<CollectiveGroup> kReductions{group_of({0, 1}, {Kind::ReduceGradient})};

TEST(Build, TheSameCollectivesInTheSameOrderMeet) {
  const Wired made = collective("reduce2 reduce1", "reduce2 reduce1", kReductions);
  EXPECT_EQ(made.faults(), Lines{});
  EXPECT_TRUE(made.finishes());
}

// The first collective that differs is the fault; both members wait there, and so does every task
// behind it.
TEST(Build, CollectivesInAnotherOrderAreAFaultAndNobodyGoesOn) {
  const Wired made = collective("reduce1 reduce2", "reduce2 reduce1", kReductions);
  EXPECT_EQ(made.faults(), Lines{"collective order: 1:reduce2, 0:reduce1"});
  EXPECT_EQ(made.never(), (Lines{"0:reduce1", "1:reduce2"}));
  EXPECT_FALSE(made.finishes());
}

TEST(Build, ACollectiveThatAMemberLacksIsAFaultWithoutAnother) {
  const Wired made = collective("reduce1 reduce2", "reduce1", kReductions);
  EXPECT_EQ(made.faults(), Lines{"collective order: 0:reduce2"});
  EXPECT_EQ(made.never(), Lines{"0:reduce2"});
}

TEST(Build, ATransferAndACollectiveStartEachByItself) {
  const auto vertices = [](const std::string& order) {
    const Schedule schedule =
        read_schedule("ranks 2\nmicrobatches 1\nplacement chain\nrank 0: " + order +
                      "\nrank 1: recv-F1.0 F1.0 reduce1\n");
    return wired(schedule, as_written(schedule), {}, kReductions).graph().task_of.size();
  };
  EXPECT_EQ(vertices("F1.0 (send-F1.0 reduce1)"), vertices("F1.0 send-F1.0 reduce1"));
}

TEST(Build, RanksOutsideAGroupReduceByThemselves) {
  const Wired made = collective("reduce1", "reduce2", {group_of({0}, {Kind::ReduceGradient})});
  EXPECT_EQ(made.faults(), Lines{});
  EXPECT_TRUE(made.finishes());
}

TEST(Build, DispatchesOfOneMicrobatchMeetThoseOfTheSame) {
  const std::vector<CollectiveGroup> experts{
      group_of({0, 1}, {Kind::DispatchForward, Kind::CombineForward})};
  EXPECT_EQ(
      collective("F1.0 dispatch-F1.0 F1.0 combine-F1.0", "F1.0 dispatch-F1.0 combine-F1.0", experts)
          .faults(),
      Lines{});
  EXPECT_EQ(collective("F1.0 dispatch-F1.0", "F1.0 dispatch-F1.1", experts).faults(),
            Lines{"collective order: 1:dispatch-F1.1, 0:dispatch-F1.0"});
}

TEST(Build, ParametersAreThereBeforeTheirReaderAndKeptUntilTheLastOne) {
  const Schedule schedule = read_schedule(
      "ranks 1\nmicrobatches 2\nchunks 1\n"
      "rank 0: unshard1 F1.0 F1.1 B1.0 B1.1 reduce1 reshard1\n");
  const Wired made = wired(schedule, as_written(schedule));
  const Lines data = edges_of(made.graph(), made.lowered, EdgeKind::Data);
  EXPECT_EQ(data,
            (Lines{"0:unshard1 -> 0:F1.0 data", "0:F1.0 -> 0:B1.0 data", "0:F1.1 -> 0:B1.1 data",
                   "0:B1.1 -> 0:reduce1 data", "0:B1.1 -> 0:reshard1 data"}));
}

// Its transfers share a start and an end where they are one group, and have their own where they
// are issued one by one.
TEST(Build, AGroupOfOneDirectionIsIssuedTransferByTransferOnLazyChannels) {
  const auto vertices = [](const std::string& orders, Communicators layout) {
    const Schedule schedule = read_schedule("ranks 2\nmicrobatches 2\nplacement chain\n" + orders);
    return wired(schedule, as_written(schedule), {.communicators = layout}).graph().task_of.size();
  };
  const std::string one_way =
      "rank 0: F1.0 F1.1 (send-F1.0 send-F1.1)\nrank 1: (recv-F1.0 recv-F1.1) F1.0 F1.1\n";
  EXPECT_EQ(vertices(one_way, Communicators::PerPair), 4U + 2 * 2);
  EXPECT_EQ(vertices(one_way, Communicators::LazyHybrid), 4U + 4 * 2);
  const std::string mixed =
      "rank 0: F1.0 F1.1 (send-F1.1 recv-B1.0)\nrank 1: B1.0 (recv-F1.1 send-B1.0)\n";
  EXPECT_EQ(vertices(mixed, Communicators::PerPair), vertices(mixed, Communicators::LazyHybrid));
}

TEST(Build, ATransferToAStageThatNobodyHoldsIsNowhere) {
  const Schedule schedule = read_schedule(
      "ranks 2\nstages 3\nmicrobatches 1\nplacement custom\nrank 0 stages 0\nrank 1 stages 2\n"
      "rank 0: F1.0 send-F1.0\nrank 1: F1.0\n");
  const Lines faults = wired(schedule, as_written(schedule)).faults();
  EXPECT_EQ(std::count(faults.begin(), faults.end(), "nowhere: 0:send-F1.0"), 1);
}

TEST(Build, OnAStreamOfItsOwnAWeightGradientMayComeFirstOrInAComposite) {
  const Environment beside{.weight_stream = true};
  const Lines issue{"0:F1.1 -> 0:W1.0 issue"};
  const auto issued = [&](const std::string& order) {
    const Schedule schedule = read_schedule("microbatches 2\nrank 0: " + order + "\n");
    const Wired made = wired(schedule, as_written(schedule), beside);
    return edges_of(made.graph(), made.lowered, EdgeKind::Issue);
  };
  EXPECT_EQ(issued("W1.0 F1.1"), Lines{});
  EXPECT_EQ(issued("(F1.1 W1.0)"), issue);
  EXPECT_EQ(issued("F1.1 (W1.0 B1.1)"), issue);
  EXPECT_EQ(issued("(F1.1 W1.0 B1.1)"), issue);
}

TEST(Build, OnAStreamOfTheirOwnWeightGradientsOfOneCallRunAsOne) {
  const auto issued = [&](const std::string& order) {
    const Schedule schedule = read_schedule("microbatches 2\nrank 0: " + order + "\n");
    const Wired made = wired(schedule, as_written(schedule), {.weight_stream = true});
    return edges_of(made.graph(), made.lowered, EdgeKind::Issue);
  };
  const std::string passes = "F1.0 F1.1 B1.0 B1.1 ";
  const Lines one{"0:B1.1 -> 0:W1.0 issue"};
  const Lines two{"0:B1.1 -> 0:W1.0 issue", "0:B1.1 -> 0:W1.1 issue"};
  EXPECT_EQ(issued(passes + "(W1.0 W1.1)"), one);
  EXPECT_EQ(issued(passes + "W1.0 W1.1"), two);
  EXPECT_EQ(issued("F1.0 F2.0 B2.0 B1.0 (W1.0 W2.0)"),
            (Lines{"0:B1.0 -> 0:W1.0 issue", "0:B1.0 -> 0:W2.0 issue"}));
}

TEST(Build, ParametersOutliveWeightGradientsOnAStreamOfTheirOwn) {
  const Schedule schedule =
      read_schedule("microbatches 1\nrank 0: unshard1 F1.0 B1.0 W1.0 reduce1\n");
  const Wired made = wired(schedule, as_written(schedule), {.weight_stream = true});
  const Lines data = edges_of(made.graph(), made.lowered, EdgeKind::Data);
  for (const std::string before : {"0:B1.0 -> 0:reduce1 data", "0:W1.0 -> 0:reduce1 data"}) {
    EXPECT_EQ(std::count(data.begin(), data.end(), before), 1) << before;
  }
}

TEST(Build, WhatLiesBeyondTheStepHasNoEvents) {
  const std::string order = "rank 0: F1.0 dispatch-F1.0 F1.5 dispatch-F1.5\n";
  const CollectiveGroup experts{.name = "ep", .members = {0}, .actions = {Kind::DispatchForward}};
  const auto events = [&](const std::string& microbatches) {
    const Schedule schedule = read_schedule("microbatches " + microbatches + "\n" + order);
    const Wired made = wired(schedule, as_written(schedule), {}, {experts});
    return edges_of(made.graph(), made.lowered, EdgeKind::Event).size();
  };
  EXPECT_EQ(events("6"), 2u);
  EXPECT_EQ(events("1"), 1u);
}

TEST(Build, ASendOfWhatAnotherRankMakesComesTooEarly) {
  const Schedule schedule = read_schedule(
      "ranks 3\nstages 2\nmicrobatches 1\nplacement custom\n"
      "rank 0 stages 0\nrank 1 stages 1\nrank 2 stages 0\n"
      "rank 0: F1.0\nrank 1: recv-F1.0 F1.0\nrank 2: send-F1.0\n");
  const Lines faults = wired(schedule, as_written(schedule)).faults();
  EXPECT_EQ(std::count(faults.begin(), faults.end(), "send too early: 2:send-F1.0, 0:F1.0"), 1);
}

// A rank cannot wait for what another one issues.
TEST(Build, AWaitForTheSendOfAnotherRankIsNeverOver) {
  const Schedule schedule = read_schedule(
      "ranks 3\nstages 2\nmicrobatches 1\nplacement custom\n"
      "rank 0 stages 0\nrank 1 stages 1\nrank 2 stages 0\n"
      "rank 0: F1.0 send-F1.0 wait-send-F1.0\nrank 1: recv-F1.0 F1.0\nrank 2: wait-send-F1.0\n");
  const Wired made = wired(schedule, as_written(schedule));
  EXPECT_EQ(made.never(), Lines{"2:wait-send-F1.0"});
  EXPECT_EQ(edges_of(made.graph(), made.lowered, EdgeKind::Wait),
            Lines{"0:send-F1.0] -> 0:wait-send-F1.0 wait"});
}

TEST(Build, WhatGoesOnWithNothingBeforeItBeginsAnew) {
  const Action forward{.kind = Kind::Forward, .chunk = 1, .microbatch = 0};
  const Lowered lowered{.ranks = {StepList({to_step(forward, kNoEntry, Group::Continues)})}};
  const Schedule schedule = read_schedule("microbatches 1\nrank 0: F1.0\n");
  EXPECT_EQ(wired(schedule, lowered).graph().tasks[0].start, 0u);
}

TEST(Build, CollectivesOfDifferentLayersAreNotTheSame) {
  const Schedule schedule =
      read_schedule("ranks 2\nmicrobatches 1\nrank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\n");
  const auto faults = [&](std::uint16_t layer) {
    const Step dispatch =
        to_step({.kind = Kind::DispatchForward, .chunk = 1, .microbatch = 0}, kNoEntry);
    Step other = dispatch;
    other.layer = layer;
    const Lowered lowered{.ranks = {StepList({dispatch}), StepList({other})}};
    return wired(schedule, lowered, {},
                 {{.name = "ep", .members = {0, 1}, .actions = {Kind::DispatchForward}}})
        .made.faults.size();
  };
  EXPECT_EQ(faults(0), 0u);
  EXPECT_EQ(faults(1), 1u);
}

TEST(Build, AMemberThatIsNoRankPerformsNothing) {
  const Schedule schedule = read_schedule("microbatches 1\nrank 0: F1.0 dispatch-F1.0\n");
  const CollectiveGroup group{.name = "ep", .members = {0}, .actions = {Kind::DispatchForward}};
  const Wired made = wired(schedule, as_written(schedule), {}, {group});
  EXPECT_EQ(collectives_of(made.graph(), group, 0).size(), 1u);
  EXPECT_TRUE(collectives_of(made.graph(), group, 1).empty());
}

}  // namespace
}  // namespace capo
