#include "core/timeline/picture.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace capo {
namespace {

Picture measured() {
  Picture picture{.title = "a.order", .verdict = "rejected", .setting = {"measured: host engine"}};
  Timeline& timeline = picture.timeline;
  timeline.origin = Timeline::Origin::Measured;
  timeline.unit = Timeline::Unit::Microseconds;
  timeline.ranks = 2;
  timeline.makespan = 4;
  timeline.lanes = {{0, "compute"}, {0, "p2p"}, {1, "compute"}};
  timeline.tasks = {{.begin = 0.5,
                     .end = 2,
                     .lane = 0,
                     .id = 0,
                     .microbatch = 3,
                     .kind = Kind::Forward,
                     .chunk = 2},
                    {.begin = 2,
                     .end = 2,
                     .lane = 1,
                     .id = 1,
                     .microbatch = 3,
                     .kind = Kind::SendForward,
                     .chunk = 2},
                    {.begin = 3, .end = 4, .lane = 2, .id = 2, .kind = Kind::ReduceGradient}};
  timeline.label = [](std::uint32_t id) {
    return std::vector<std::string>{"F2.3 experts", "send-F2.3", "all of them"}[id];
  };
  timeline.memory = {{{0.5, 1}, {2, 0}}, {}};
  picture.alarms = {
      {.rule = "B01", .words = "error[B01]: bad", .places = {{0, 0.5, 2}, {2, 3, 4}}}};
  return picture;
}

std::string refusal_of(const std::string& text) {
  const auto read = read_timeline(text, {});
  return read ? "" : read.error().finding.message;
}

// A transfer that a run measured has no chunk in its label.
TEST(TraceReader, ATransferIsKnownWithoutItsChunk) {
  Picture picture = measured();
  picture.timeline.label = [](std::uint32_t id) {
    return std::vector<std::string>{"F2.3", "recv-B", "exchange"}[id];
  };
  const auto read = read_timeline(chrome_trace(picture), {});
  ASSERT_TRUE(read) << read.error().finding.message;
  EXPECT_EQ(read->timeline.tasks[1].kind, Kind::ReceiveBackward);
  EXPECT_EQ(read->timeline.tasks[1].chunk, 0);
  EXPECT_EQ(read->timeline.tasks[2].kind, Kind::ReduceGradient);
}

TEST(TraceReader, APictureComesBackAsItsTraceSaysIt) {
  const std::string text = chrome_trace(measured());
  ASSERT_TRUE(is_timeline(text));
  const auto read = read_timeline(text, {});
  ASSERT_TRUE(read) << read.error().finding.message;
  EXPECT_EQ(chrome_trace(*read), text);
  EXPECT_EQ(read->timeline.origin, Timeline::Origin::Measured);
  EXPECT_EQ(read->timeline.makespan, 4);
  EXPECT_FALSE(read->timeline.one_chunk);
  ASSERT_EQ(read->timeline.tasks.size(), 3U);
  EXPECT_EQ(read->timeline.tasks[0].kind, Kind::Forward);
  EXPECT_EQ(read->timeline.tasks[0].chunk, 2);
  EXPECT_EQ(read->timeline.tasks[0].microbatch, 3);
  EXPECT_EQ(read->timeline.tasks[1].kind, Kind::SendForward);
  ASSERT_EQ(read->alarms.size(), 1U) << "one finding at two places";
  EXPECT_EQ(read->alarms[0].places.size(), 2U);
  EXPECT_FALSE(read->accepted);
}

TEST(TraceReader, WhatQuantizationTakesComesBackAsAPartOfItsTask) {
  Picture picture = measured();
  picture.timeline.tasks[0].quantizing = 0.25;
  const std::string text = chrome_trace(picture);
  const auto read = read_timeline(text, {});
  ASSERT_TRUE(read) << read.error().finding.message;
  ASSERT_EQ(read->timeline.tasks.size(), 3U);
  EXPECT_EQ(read->timeline.tasks[0].quantizing, 0.25);
  EXPECT_EQ(read->timeline.tasks[1].quantizing, 0);
  EXPECT_EQ(chrome_trace(*read), text);
}

TEST(TraceReader, WhatQuantizationTakesStandsBehindItsTaskAndWithinIt) {
  const auto with = [](const std::string& events) {
    return R"({"schema": "capo.timeline/1", "otherData": {}, "traceEvents": [)" + events + "]}";
  };
  const std::string task = R"({"ph": "X", "pid": 0, "tid": 0, "ts": 1, "dur": 2, "name": "F1.0"})";
  const std::string part = R"({"ph": "X", "cat": "quantization", "pid": 0, "tid": 0, "ts": 1, )";
  EXPECT_EQ(refusal_of(with(part + R"("dur": 1})")), "there is no task that it is a part of");
  EXPECT_EQ(refusal_of(with(task + "," + part + R"("dur": -1})")).substr(0, 8), "dur must");
  const auto read = read_timeline(with(task + "," + part + R"("dur": 9})"), {});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->timeline.tasks[0].quantizing, 2) << "all of it";
}

TEST(TraceReader, OrdersAreNoTimelines) {
  EXPECT_FALSE(is_timeline("[1, -1]"));
  EXPECT_FALSE(is_timeline(R"({"schema": 1, "ranks": []})"));
  EXPECT_FALSE(is_timeline("# capo.timeline/1\nrank 0: F0 B0"));
  EXPECT_FALSE(is_timeline(chrome_trace(measured().timeline))) << "it has no verdict";
}

TEST(TraceReader, WhatIsMissingIsNamed) {
  const std::string head = R"({"schema": "capo.timeline/1", "otherData": {"verdict": "accepted"})";
  EXPECT_NE(refusal_of("{"), "");
  EXPECT_EQ(refusal_of(R"({"schema": "capo.timeline/1"})"),
            "the timeline has no `otherData` with its verdict");
  EXPECT_EQ(refusal_of(head + "}"), "the timeline has no list `traceEvents`");
  EXPECT_NE(refusal_of(head + R"(, "traceEvents": [1]})").find("not an object"), std::string::npos);
  EXPECT_EQ(refusal_of(head + R"(, "traceEvents": [{"ph": "X"}]})"), "the event has no `pid`");
  EXPECT_EQ(refusal_of(head + R"(, "traceEvents": [{"ph": "X", "pid": 0, "tid": 0, "ts": 1}]})"),
            "the event has no `dur`");
  EXPECT_NE(refusal_of(head + R"(, "traceEvents": [{"ph": "X", "pid": -1, "tid": 0}]})"), "");
}

TEST(TraceReader, RanksHaveALimit) {
  const auto with_rank = [](int rank) {
    return R"({"schema": "capo.timeline/1", "otherData": {}, "traceEvents": [{"ph": "X", "pid": )" +
           std::to_string(rank) + R"(, "tid": 0, "ts": 1, "dur": 1, "name": "F1.0"}]})";
  };
  EXPECT_TRUE(read_timeline(with_rank(3), {.ranks = 4}));
  const auto read = read_timeline(with_rank(4), {.ranks = 4});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, Refusal::Kind::Limit);
  EXPECT_EQ(read.error().finding.help.text, "raise the limit with --max-ranks");
}

}  // namespace
}  // namespace capo
