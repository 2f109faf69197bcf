#include "run/replay_mean.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace capo::run {
namespace {

ReplayTimes replay_of(double length, std::int64_t nanoseconds, double doubt) {
  return {.replay = length + 2,
          .begin = 1,
          .end = 1 + length,
          .busy = length,
          .launch = 3,
          .beginning = {.nanoseconds = nanoseconds, .doubt = doubt},
          .timeline = {{.op = 4, .begin = 1, .end = 1 + length}}};
}

TEST(ReplayMean, OfOneReplayIsThat) {
  ReplayMean one;
  one.add(replay_of(10, 1000, 2));
  EXPECT_EQ(one.mean().replay, 12);
  EXPECT_EQ(one.mean().beginning.nanoseconds, 1000);
}

TEST(ReplayMean, IsThatOfEachTimeAndOfEachTask) {
  ReplayMean three;
  three.add(replay_of(10, 1000, 2));
  three.add(replay_of(10, 2000, 5));
  three.add(replay_of(16, 6000, 1));
  const ReplayTimes mean = three.mean();
  EXPECT_DOUBLE_EQ(mean.replay, 14);
  EXPECT_DOUBLE_EQ(mean.begin, 1);
  EXPECT_DOUBLE_EQ(mean.end, 13);
  EXPECT_DOUBLE_EQ(mean.busy, 12);
  EXPECT_DOUBLE_EQ(mean.launch, 3);
  EXPECT_EQ(mean.beginning.nanoseconds, 3000);
  EXPECT_EQ(mean.beginning.doubt, 5) << "the largest";
  ASSERT_EQ(mean.timeline.size(), 1u);
  EXPECT_EQ(mean.timeline[0].op, 4u);
  EXPECT_DOUBLE_EQ(mean.timeline[0].end, 13);
}

TEST(ReplayMean, BeginningsNearTheEndOfTheirTypeAreNotAddedUp) {
  constexpr std::int64_t kLate = std::numeric_limits<std::int64_t>::max() - 10;
  ReplayMean many;
  for (int i = 0; i < 5; ++i) many.add(replay_of(1, kLate + 2 * i, 0));
  EXPECT_EQ(many.mean().beginning.nanoseconds, kLate + 4);
}

}  // namespace
}  // namespace capo::run
