#include "core/timeline/timeline.h"
#include "tests/core/timeline/timelines.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using timelines::on_one_lane;

TEST(ChromeTrace, NamesRanksAndLanesAndListsTasks) {
  const Timeline timeline = on_one_lane(
      {{.begin = 0, .end = 1.5, .stage = 2, .microbatch = 3, .kind = Kind::Forward}}, {"F1.3"});
  EXPECT_EQ(chrome_trace(timeline),
            R"({"displayTimeUnit": "ms", "traceEvents": [)"
            "\n"
            R"({"name":"process_name","ph":"M","pid":0,"tid":0,"args":{"name":"rank 0"}},)"
            "\n"
            R"({"name":"thread_name","ph":"M","pid":0,"tid":0,"args":{"name":"compute"}},)"
            "\n"
            R"({"name":"F1.3","cat":"forward","ph":"X","ts":0.0,"dur":1.5,"pid":0,"tid":0,)"
            R"("args":{"stage":2,"microbatch":3}})"
            "\n"
            "]}\n");
}

TEST(ChromeTrace, LeavesOutStagesAndLanesThatAreNotKnown) {
  Timeline timeline = on_one_lane({{.end = 1, .kind = Kind::SendForward}}, {"send-F"});
  timeline.lanes.front().name.clear();
  const std::string trace = chrome_trace(timeline);
  EXPECT_EQ(trace.find("thread_name"), std::string::npos) << trace;
  EXPECT_NE(trace.find(R"("cat":"communication")"), std::string::npos) << trace;
  EXPECT_NE(trace.find(R"("args":{"microbatch":-1})"), std::string::npos) << trace;
}

TEST(ChromeTrace, CountsWhatARankHolds) {
  Timeline timeline = on_one_lane({}, {});
  timeline.memory = {{{.time = 1, .held = 2}}};
  EXPECT_NE(chrome_trace(timeline).find(
                R"({"name":"held","ph":"C","ts":1.0,"pid":0,"args":{"activations":2.0}})"),
            std::string::npos);
}

TEST(ChromeTrace, QuantizationIsASliceWithinItsTask) {
  const Timeline timeline = on_one_lane(
      {{.begin = 1, .end = 3, .microbatch = 0, .kind = Kind::Forward, .quantizing = 0.5},
       {.begin = 3, .end = 4, .microbatch = 0, .kind = Kind::BackwardWeight}},
      {"F1.0", "W1.0"});
  const std::string trace = chrome_trace(timeline);
  const std::size_t task = trace.find(R"({"name":"F1.0")");
  const std::size_t part = trace.find(
      R"({"name":"quantize F1.0","cat":"quantization","ph":"X","ts":1.0,"dur":0.5,"pid":0,"tid":0,)");
  ASSERT_NE(part, std::string::npos) << trace;
  EXPECT_LT(task, part);
  EXPECT_LT(part, trace.find(R"({"name":"W1.0")"));
  EXPECT_EQ(trace.find("quantize W1.0"), std::string::npos);
}

}  // namespace
}  // namespace capo
