#include "core/timeline/timeline.h"
#include "tests/core/timeline/timelines.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using timelines::on_one_lane;

const std::vector<TimedTask> kStep{{.begin = 0, .end = 6, .kind = Kind::Forward},
                                   {.begin = 6, .end = 7, .kind = Kind::Backward},
                                   {.begin = 8, .end = 12, .kind = Kind::Forward},
                                   {.begin = 7, .end = 12, .kind = Kind::SendForward}};

TEST(TextGrid, ShowsLabelsLettersAndIdleTime) {
  const Timeline timeline = on_one_lane(kStep, {"F1.0", "B1.0", "F1.1&B1.1", "send-F1.0"});
  EXPECT_EQ(text_grid(timeline, {.width = 8 + 12 + 1}),
            "rank 0 |F1.0--b.F1.1|\none character is 1\n");
}

TEST(TextGrid, LeavesOutChunksIfEachRankHasOne) {
  Timeline timeline = on_one_lane(kStep, {"F1.0", "B1.0", "F1.1&B1.1", "send-F1.0"});
  timeline.one_chunk = true;
  EXPECT_EQ(text_grid(timeline, {.width = 8 + 12 + 1}),
            "rank 0 |F0----b.F1&B|\none character is 1\n");
}

TEST(TextGrid, OfNothingIsIdle) {
  EXPECT_EQ(text_grid(on_one_lane({}, {}), {.width = 8 + 3 + 1}),
            "rank 0 |...|\none character is 0\n");
}

TEST(TextGrid, ColoursRunsOfAKindAndNoCharacterMore) {
  const Timeline timeline = on_one_lane(kStep, {"F1.0", "B1.0", "F1.1&B1.1", "send-F1.0"});
  EXPECT_EQ(text_grid(timeline, {.width = 8 + 12 + 1, .colour = Colour::On}),
            "rank 0 |\x1b[34mF1.0--\x1b[0m\x1b[32mb\x1b[0m\x1b[2m.\x1b[0m\x1b[35mF1.1\x1b[0m|\n"
            "one character is 1\n");
}

TEST(TextGrid, TellsTheUnitOfATimeThatHasOne) {
  const auto last_line = [](double factor) {
    std::vector<TimedTask> step = kStep;
    for (TimedTask& task : step) {
      task.begin *= factor;
      task.end *= factor;
    }
    Timeline timeline = on_one_lane(step, {"F1.0", "B1.0", "F1.1&B1.1", "send-F1.0"});
    timeline.unit = Timeline::Unit::Microseconds;
    const std::string text = text_grid(timeline, {.width = 8 + 12 + 1});
    return text.substr(text.find('\n') + 1);
  };
  EXPECT_EQ(last_line(999), "one character is 999 us\n");
  EXPECT_EQ(last_line(1000), "one character is 1 ms\n");
  EXPECT_EQ(last_line(430'941), "one character is 430.941 ms\n");
  EXPECT_EQ(last_line(2e6), "one character is 2 s\n");
}

TEST(TextGrid, OfOneRankIsItsLine) {
  Timeline timeline = on_one_lane(kStep, {"F1.0", "B1.0", "F1.1&B1.1", "send-F1.0"});
  timeline.ranks = 2;
  EXPECT_EQ(text_grid(timeline, {.width = 8 + 12 + 1, .rank = 1}),
            "rank 1 |............|\none character is 1\n");
}

}  // namespace
}  // namespace capo
