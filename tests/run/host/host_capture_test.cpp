// Captures and graphs of the host engine: what is recorded, what waits for what, what a replay
// does, and each way to go wrong.
//
//   origin 0:   a ---- fork ---- c ---- join ---- d       d is after b and c, both after a
//   stream 1:             \----- b ----/

#include "run/host/host_engine.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace capo::run::host {
namespace {

using Nodes = std::vector<std::uint32_t>;

std::string message_of(const Engine& engine) {
  return engine.error() ? engine.error()->message : "no error";
}

// An engine of four streams with one byte, and fills of it.
class HostCapture : public ::testing::Test {
 protected:
  HostCapture() {
    engine.have_streams(4);
    memory = engine.allocate(1, "a byte");
    engine.launch(0, fill(0));
  }
  [[nodiscard]] Fill fill(std::uint8_t value) const {
    return {.bytes = 1, .value = value, .to = memory};
  }
  void launch(StreamId stream, std::uint8_t value) { engine.launch(stream, fill(value)); }
  void fork(StreamId from, StreamId to) { engine.wait(to, engine.record(from)); }
  [[nodiscard]] int value() const { return static_cast<int>(*memory); }
  // By node in the order of launches: what it waits for.
  [[nodiscard]] std::vector<Nodes> afters(GraphId graph) {
    std::vector<Nodes> all;
    for (const GraphNode& node : engine.inspect(graph)) all.push_back(node.after);
    return all;
  }

  HostEngine engine;
  std::byte* memory = nullptr;
};

TEST_F(HostCapture, RecordsAndDoesNotRun) {
  engine.begin_capture(0);
  launch(0, 5);
  EXPECT_EQ(value(), 0);
  const GraphId graph = engine.end_capture();
  EXPECT_EQ(value(), 0);
  const std::vector<GraphNode> nodes = engine.inspect(graph);
  ASSERT_EQ(nodes.size(), 1U);
  ASSERT_TRUE(std::holds_alternative<Fill>(nodes[0].call));
  EXPECT_EQ(std::get<Fill>(nodes[0].call).value, 5);
  EXPECT_EQ(std::get<Fill>(nodes[0].call).to, memory);
  EXPECT_EQ(message_of(engine), "no error");
}

TEST_F(HostCapture, AReplayRunsWhatWasRecordedEachTime) {
  engine.begin_capture(0);
  launch(0, 5);
  launch(0, 6);
  const GraphId graph = engine.end_capture();
  for (int replay = 0; replay < 2; ++replay) {
    launch(0, 1);
    EXPECT_EQ(value(), 1);
    engine.replay(graph, 3);
    EXPECT_EQ(value(), 6);
  }
}

TEST_F(HostCapture, GraphsHaveNumbersOfTheirOwn) {
  engine.begin_capture(0);
  launch(0, 5);
  const GraphId first = engine.end_capture();
  engine.begin_capture(1);
  launch(1, 6);
  launch(1, 7);
  const GraphId second = engine.end_capture();
  EXPECT_EQ(engine.inspect(first).size(), 1U);
  EXPECT_EQ(engine.inspect(second).size(), 2U);
  engine.replay(first, 0);
  EXPECT_EQ(value(), 5);
  EXPECT_TRUE(engine.inspect(second + 1).empty());
}

TEST_F(HostCapture, OnOneStreamEachNodeWaitsForTheOneBefore) {
  engine.begin_capture(2);
  for (std::uint8_t i = 0; i < 4; ++i) launch(2, i);
  EXPECT_EQ(afters(engine.end_capture()), (std::vector<Nodes>{{}, {0}, {1}, {2}}));
}

TEST_F(HostCapture, AForkAndAJoinAreWhatTheyWereDrawnAs) {
  engine.begin_capture(0);
  launch(0, 0);
  fork(0, 1);
  launch(1, 1);
  launch(0, 2);
  fork(1, 0);
  launch(0, 3);
  EXPECT_EQ(afters(engine.end_capture()), (std::vector<Nodes>{{}, {0}, {0}, {1, 2}}));
  EXPECT_EQ(message_of(engine), "no error");
}

// Behind nothing at all: the two streams have no node before them.
TEST_F(HostCapture, AForkAtTheBeginningWaitsForNothing) {
  engine.begin_capture(0);
  fork(0, 1);
  launch(1, 1);
  launch(0, 2);
  fork(1, 0);
  EXPECT_EQ(afters(engine.end_capture()), (std::vector<Nodes>{{}, {}}));
}

TEST_F(HostCapture, AnEventIsOfTheMomentWhenItWasRecorded) {
  engine.begin_capture(0);
  launch(0, 0);
  const EventId early = engine.record(0);
  launch(0, 1);
  engine.wait(1, early);
  launch(1, 2);
  fork(1, 0);
  launch(0, 3);
  EXPECT_EQ(afters(engine.end_capture()), (std::vector<Nodes>{{}, {0}, {0}, {1, 2}}));
}

TEST_F(HostCapture, WhatIsWaitedForTwiceIsNamedOnce) {
  engine.begin_capture(0);
  launch(0, 0);
  const EventId event = engine.record(0);
  engine.wait(1, event);
  engine.wait(1, event);
  launch(1, 1);
  fork(1, 0);
  fork(1, 0);
  launch(0, 2);
  EXPECT_EQ(afters(engine.end_capture()), (std::vector<Nodes>{{}, {0}, {0, 1}}));
}

TEST_F(HostCapture, AStreamThatWasDrawnInAndNotJoinedIsAnError) {
  engine.begin_capture(0);
  launch(0, 0);
  fork(0, 2);
  launch(2, 1);
  launch(0, 2);
  static_cast<void>(engine.end_capture());
  EXPECT_EQ(message_of(engine), "host engine: the capture ended with stream 2 unjoined");
}

TEST_F(HostCapture, WhatFollowsAJoinHasToBeJoinedAsWell) {
  engine.begin_capture(0);
  fork(0, 2);
  launch(2, 1);
  fork(2, 0);
  launch(2, 2);
  static_cast<void>(engine.end_capture());
  EXPECT_EQ(message_of(engine), "host engine: the capture ended with stream 2 unjoined");
}

TEST_F(HostCapture, AnEventFromBeforeTheLastNodeDoesNotJoin) {
  engine.begin_capture(0);
  fork(0, 2);
  launch(2, 1);
  const EventId early = engine.record(2);
  launch(2, 2);
  engine.wait(0, early);
  static_cast<void>(engine.end_capture());
  EXPECT_EQ(message_of(engine), "host engine: the capture ended with stream 2 unjoined");
}

TEST_F(HostCapture, AStreamThatIsNoPartOfItMayNotBeUsed) {
  engine.begin_capture(0);
  launch(1, 1);
  EXPECT_EQ(message_of(engine),
            "host engine: stream 1 was used during a capture that it is no part of");
}

// The streams of one capture are no part of the next.
TEST_F(HostCapture, EachCaptureDrawsInItsOwnStreams) {
  engine.begin_capture(0);
  fork(0, 1);
  launch(1, 1);
  fork(1, 0);
  static_cast<void>(engine.end_capture());
  engine.begin_capture(0);
  launch(1, 2);
  EXPECT_EQ(message_of(engine),
            "host engine: stream 1 was used during a capture that it is no part of");
}

TEST_F(HostCapture, MemoryIsNotWrittenFromOutside) {
  engine.begin_capture(0);
  const std::byte one{1};
  engine.write(memory, &one, 1);
  EXPECT_EQ(message_of(engine),
            "host engine: memory was written from outside while a capture was open");
  EXPECT_EQ(value(), 0);
}

TEST_F(HostCapture, MemoryIsNotReadFromOutside) {
  engine.begin_capture(0);
  std::byte one{1};
  engine.read(&one, memory, 1);
  EXPECT_EQ(message_of(engine),
            "host engine: memory was read from outside while a capture was open");
  EXPECT_EQ(static_cast<int>(one), 1);
}

TEST_F(HostCapture, AnEventOfBeforeTheCaptureIsOutsideOfIt) {
  const EventId event = engine.record(1);
  engine.begin_capture(0);
  engine.wait(0, event);
  EXPECT_EQ(message_of(engine),
            "host engine: a captured stream waits for an event outside the capture");
}

TEST_F(HostCapture, AnEventOfAStreamThatIsNoPartOfItIsOutsideOfIt) {
  engine.begin_capture(0);
  engine.wait(0, engine.record(1));
  EXPECT_EQ(message_of(engine),
            "host engine: a captured stream waits for an event outside the capture");
}

TEST_F(HostCapture, AnEventOfACaptureThatIsOverIsWaitedForByNobody) {
  engine.begin_capture(0);
  launch(0, 1);
  const EventId event = engine.record(0);
  static_cast<void>(engine.end_capture());
  engine.wait(0, event);
  EXPECT_EQ(message_of(engine),
            "host engine: a stream waits for an event of a capture that is over");
}

TEST_F(HostCapture, AnUnknownEventIsAnErrorDuringACaptureAsWell) {
  engine.begin_capture(0);
  engine.wait(0, 1234);
  EXPECT_EQ(message_of(engine), "host engine: a stream waits for an event that nobody recorded");
}

TEST_F(HostCapture, AnEndWithoutABeginIsAnError) {
  static_cast<void>(engine.end_capture());
  EXPECT_EQ(message_of(engine), "host engine: a capture was ended that nobody began");
}

TEST_F(HostCapture, ABeginWithinACaptureIsAnError) {
  engine.begin_capture(0);
  engine.begin_capture(1);
  EXPECT_EQ(message_of(engine), "host engine: a capture was begun while another was open");
}

TEST_F(HostCapture, AGraphThatNobodyCapturedIsNotReplayed) {
  engine.replay(0, 0);
  EXPECT_EQ(message_of(engine), "host engine: a graph was replayed that nobody captured");
}

// 1 forks to 2, which joins 1, which joins the origin.
TEST_F(HostCapture, AStreamMayForkOnAndJoinTheOneThatItCameFrom) {
  engine.begin_capture(0);
  launch(0, 0);
  fork(0, 1);
  launch(1, 1);
  fork(1, 2);
  launch(2, 2);
  launch(1, 3);
  fork(2, 1);
  launch(1, 4);
  fork(1, 0);
  launch(0, 5);
  EXPECT_EQ(afters(engine.end_capture()), (std::vector<Nodes>{{}, {0}, {1}, {1}, {2, 3}, {0, 4}}));
  EXPECT_EQ(message_of(engine), "no error");
}

TEST_F(HostCapture, AnEventOfAnEarlierCaptureIsOutsideOfTheNext) {
  engine.begin_capture(0);
  launch(0, 1);
  const EventId event = engine.record(0);
  static_cast<void>(engine.end_capture());
  engine.begin_capture(0);
  engine.wait(0, event);
  EXPECT_EQ(message_of(engine),
            "host engine: a captured stream waits for an event outside the capture");
}

TEST_F(HostCapture, AGraphIsNotRunWhileACaptureIsOpen) {
  engine.begin_capture(0);
  launch(0, 5);
  const GraphId graph = engine.end_capture();
  engine.begin_capture(0);
  engine.replay(graph, 0);
  EXPECT_EQ(value(), 0);
}

TEST_F(HostCapture, NothingIsAllocatedWhileACaptureIsOpen) {
  engine.begin_capture(0);
  EXPECT_EQ(engine.allocate(1, "a byte"), nullptr);
  EXPECT_EQ(message_of(engine), "host engine: memory was allocated while a capture was open");
}

}  // namespace
}  // namespace capo::run::host
