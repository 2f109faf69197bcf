// Home-made generators shrink to small orders that are orders still.

#include "testing/generators/shrinking.h"

#include "core/minimise/settle.h"
#include "core/minimise/size.h"
#include "core/text/order_text.h"
#include "testing/generators/sound_schedule.h"
#include "testing/laws/verdicts.h"
#include "tests/testing/sample.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace capo::testing {
namespace {

Schedule gpipe(std::int32_t ranks, std::int32_t microbatches) {
  Schedule schedule{.naming = Naming::Named, .topology = Topology::Chain};
  for (std::int32_t r = 0; r < ranks; ++r) {
    RankOrder& rank = schedule.ranks.emplace_back();
    for (const Kind kind : {Kind::Forward, Kind::Backward}) {
      for (std::int32_t m = 0; m < microbatches; ++m)
        rank.order.push_back({.chunk = 1, .microbatch = m, .kind = kind});
    }
  }
  settle(schedule);
  return schedule;
}

rc::Gen<Schedule> orders() {
  return shrinking(rc::gen::apply(gpipe, rc::gen::inRange(1, 5), rc::gen::inRange(1, 9)));
}

TEST(Shrinking, KeepsAnOrderAnOrder) {
  for (const auto& order : sample_shrinkables(orders(), 20)) {
    for (const Schedule& smaller : shrink_path(order))
      EXPECT_EQ(laws::is_accepted(smaller), std::nullopt);
  }
}

// Chunks of a rank that has fewer than others, and replays that take other backwards apart.
TEST(Shrinking, KeepsAnySoundScheduleSound) {
  for (Schedule schedule : sample(sound_schedule(), 1000)) {
    for (std::size_t step = 0;; ++step) {
      const std::vector<Schedule> smaller = smaller_sound_schedules(schedule);
      for (const Schedule& each : smaller)
        EXPECT_EQ(laws::is_accepted(each), std::nullopt) << print_order_file(schedule);
      if (smaller.empty()) break;
      schedule = Schedule(smaller[step * 7 % smaller.size()]);
    }
  }
}

TEST(Shrinking, EndsAtTheLeastOrder) {
  for (const auto& order : sample_shrinkables(orders(), 20)) {
    const Schedule least = shrink_path(order).back();
    ASSERT_EQ(least.ranks.size(), 1U);
    EXPECT_EQ(size_of(least).entries, 2);
  }
}

TEST(Shrinking, TakesEntriesWhereItIsAskedTo) {
  const auto broken = shrinking(rc::gen::just(gpipe(2, 2)), smaller_schedules);
  const Schedule least = shrink_path(sample_shrinkables(broken, 1).front()).back();
  EXPECT_LE(size_of(least).entries, 1);
}

}  // namespace
}  // namespace capo::testing
