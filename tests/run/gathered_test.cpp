// Reports of several processes as one: whose times are put on which axis.

#include "run/divided.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace capo::run {
namespace {

// A process that timed one op of 2 us in one step, from 3 us behind its beginning on.
struct TimedProcess {
  RunReport report;
  StepTimes times;

  TimedProcess(std::uint32_t op, Beginning beginning) {
    report.timeline = {{.op = op, .begin = 3, .end = 5}};
    times = {.eager = {1},
             .replay = {9},
             .begin = {3},
             .end = {5},
             .busy = {2},
             .launch = {1},
             .beginning = {beginning}};
  }
  void add_process(const TimedProcess& other) {
    add(report, times, packed(other.report, other.times));
  }
};

TEST(Gathered, TimesOfAProcessThatBeganLaterAreLater) {
  TimedProcess mine(1, {.nanoseconds = 1'000'000, .doubt = 0.25});
  mine.add_process(TimedProcess(0, {.nanoseconds = 1'007'000, .doubt = 0.5}));
  ASSERT_EQ(mine.report.timeline.size(), 2U);
  EXPECT_EQ(mine.report.timeline[0].op, 0U);
  EXPECT_DOUBLE_EQ(mine.report.timeline[0].begin, 10);
  EXPECT_DOUBLE_EQ(mine.report.timeline[0].end, 12);
  EXPECT_DOUBLE_EQ(mine.report.timeline[1].begin, 3);
  EXPECT_DOUBLE_EQ(mine.times.begin[0], 3);
  EXPECT_DOUBLE_EQ(mine.times.end[0], 12);
}

TEST(Gathered, TimesOfAProcessThatBeganEarlierAreEarlier) {
  TimedProcess mine(0, {.nanoseconds = 1'000'000});
  mine.add_process(TimedProcess(1, {.nanoseconds = 990'000}));
  EXPECT_DOUBLE_EQ(mine.report.timeline[1].begin, -7);
  EXPECT_DOUBLE_EQ(mine.times.begin[0], -7);
  EXPECT_DOUBLE_EQ(mine.times.end[0], 5);
}

TEST(Gathered, TwoProcessesMayBeOffToOppositeSides) {
  TimedProcess mine(0, {.doubt = 0.25});
  EXPECT_FALSE(mine.report.clock_doubt);
  mine.add_process(TimedProcess(1, {.doubt = 0.5}));
  mine.add_process(TimedProcess(2, {.doubt = 0.125}));
  EXPECT_DOUBLE_EQ(mine.report.clock_doubt.value(), 1);
}

TEST(Gathered, AnotherMachineHasAnotherClock) {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string here;
  if (!std::getline(file, here)) GTEST_SKIP() << "the system does not name its starts";
  TimedProcess mine(0, {});
  const TimedProcess other(1, {});
  std::string text = packed(other.report, other.times);
  const std::size_t at = text.find(here);
  ASSERT_NE(at, std::string::npos);
  text[at] = text[at] == 'a' ? 'b' : 'a';
  add(mine.report, mine.times, text);
  EXPECT_TRUE(mine.report.other_clocks);
  EXPECT_FALSE(mine.report.clock_doubt);
  EXPECT_EQ(mine.report.timeline.size(), 1U);
}

}  // namespace
}  // namespace capo::run
