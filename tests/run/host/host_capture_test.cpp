// Captures and graphs of the host engine: the nodes that are recorded, which of them wait for
// which, what a replay does, and each way to go wrong.
//
//   origin 0:   a ---- fork ---- c ---- join ---- d       d is after b and c, both after a
//   stream 1:             \----- b ----/

#include "run/host/host_engine.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <sstream>
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
  // Makes calls that are written as words:
  //
  //   (0       begins a capture on stream 0       0!   records the event on stream 0
  //   )        ends it                            1?   makes stream 1 wait for it
  //   0        launches on stream 0               0>1  both: a fork, or a join
  void call(const std::string& words) {
    std::istringstream in(words);
    EventId event = 1234;  // nobody recorded it
    for (std::string word; in >> word;) {
      const auto stream = static_cast<StreamId>(word[0] - '0');
      if (word[0] == '(') {
        engine.begin_capture(static_cast<StreamId>(word[1] - '0'));
      } else if (word == ")") {
        static_cast<void>(engine.end_capture());
      } else if (word == "new") {
        EXPECT_EQ(engine.allocate(1, "a byte"), nullptr);
      } else if (word == "replay") {
        engine.replay(0, 0);
      } else if (word.ends_with('!')) {
        event = engine.record(stream);
      } else if (word.find('?') != std::string::npos) {
        engine.wait(stream, word.ends_with('?') ? event : EventId{1234});
      } else if (word.find('>') != std::string::npos) {
        fork(stream, static_cast<StreamId>(word[2] - '0'));
      } else {
        launch(stream, 1);
      }
    }
  }
  [[nodiscard]] int value() const { return static_cast<int>(*memory); }
  // The nodes that each node waits for, in the order of launches.
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

TEST_F(HostCapture, AGraphIsNotRunWhileACaptureIsOpen) {
  engine.begin_capture(0);
  launch(0, 5);
  const GraphId graph = engine.end_capture();
  engine.begin_capture(0);
  engine.replay(graph, 0);
  EXPECT_EQ(value(), 0);
}

struct Shape {
  const char* what;
  const char* calls;
  std::vector<Nodes> afters;
};

TEST_F(HostCapture, ANodeWaitsForWhatStreamsAndEventsSay) {
  const std::vector<Shape> shapes{
      {"on one stream each node waits for the one before", "(2 2 2 2 2 )", {{}, {0}, {1}, {2}}},
      {"a fork and a join", "(0 0 0>1 1 0 1>0 0 )", {{}, {0}, {0}, {1, 2}}},
      {"a fork at the beginning, with no node before it", "(0 0>1 1 0 1>0 )", {{}, {}}},
      {"an event of the moment when it was recorded",
       "(0 0 0! 0 1? 1 1>0 0 )",
       {{}, {0}, {0}, {1, 2}}},
      {"a node that is waited for twice is named once",
       "(0 0 0! 1? 1? 1 1>0 1>0 0 )",
       {{}, {0}, {0, 1}}},
      {"a stream forks on and joins the one that it came from",
       "(0 0 0>1 1 1>2 2 1 2>1 1 1>0 0 )",
       {{}, {0}, {1}, {1}, {2, 3}, {0, 4}}},
  };
  for (std::uint32_t graph = 0; graph < shapes.size(); ++graph) {
    SCOPED_TRACE(shapes[graph].what);
    call(shapes[graph].calls);
    EXPECT_EQ(afters(graph), shapes[graph].afters);
    EXPECT_EQ(message_of(engine), "no error");
  }
}

struct Misuse {
  const char* what;
  const char* calls;
  const char* message;
};

constexpr const char* kUnjoined = "the capture ended with stream 2 unjoined";
constexpr const char* kNoPart = "stream 1 was used during a capture that it is no part of";
constexpr const char* kOutside = "a captured stream waits for an event outside the capture";

class HostMisuse : public HostCapture, public ::testing::WithParamInterface<Misuse> {};

TEST_P(HostMisuse, IsAnError) {
  call(GetParam().calls);
  EXPECT_EQ(message_of(engine), std::string("host engine: ") + GetParam().message)
      << GetParam().what;
}

INSTANTIATE_TEST_SUITE_P(
    Calls, HostMisuse,
    ::testing::Values(
        Misuse{"a stream that was drawn in is not joined", "(0 0 0>2 2 0 )", kUnjoined},
        Misuse{"a node after the join is not joined", "(0 0>2 2 2>0 2 )", kUnjoined},
        Misuse{"the event is from before the last node", "(0 0>2 2 2! 2 0? )", kUnjoined},
        Misuse{"a stream was not drawn in", "(0 1", kNoPart},
        Misuse{"each capture draws in its own streams", "(0 0>1 1 1>0 ) (0 1", kNoPart},
        Misuse{"an event from before the capture", "1! (0 0?", kOutside},
        Misuse{"an event of a stream that is no part of it", "(0 1! 0?", kOutside},
        Misuse{"an event of an earlier capture", "(0 0 0! ) (0 0?", kOutside},
        Misuse{"an event of a capture that is over", "(0 0 0! ) 0?",
               "a stream waits for an event of a capture that is over"},
        Misuse{"an unknown event during a capture", "(0 0?unknown",
               "a stream waits for an event that nobody recorded"},
        Misuse{"an end without a begin", ")", "a capture was ended that nobody began"},
        Misuse{"a begin within a capture", "(0 (1", "a capture was begun while another was open"},
        Misuse{"a replay of a graph that was not captured", "replay",
               "a graph was replayed that nobody captured"},
        Misuse{"an allocation during a capture", "(0 new",
               "memory was allocated while a capture was open"}));

}  // namespace
}  // namespace capo::run::host
