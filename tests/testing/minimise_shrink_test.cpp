#include "testing/minimise_shrink.h"

#include "core/minimise/size.h"
#include "testing/generators/dice.h"
#include "testing/generators/sound_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace capo::testing {
namespace {

bool has_a_weight_gradient(const Schedule& schedule) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [](const RankOrder& rank) {
    return std::any_of(rank.order.begin(), rank.order.end(),
                       [](const Entry& entry) { return entry.kind == Kind::BackwardWeight; });
  });
}

TEST(MinimiseShrink, EveryStepIsSmaller) {
  rc::Random random(3);
  for (int i = 0; i < 50; ++i) {
    Dice dice(random.split());
    const Schedule schedule = draw_sound_schedule(dice);
    for (const Schedule& smaller : smaller_schedules(schedule)) {
      ASSERT_LT(size_of(smaller), size_of(schedule));
    }
  }
}

// Walks as rapidcheck does: it takes the first that still fails, until none does.
TEST(MinimiseShrink, APropertyThatFailsEndsAtTheLeastSchedule) {
  rc::Random random(5);
  int walked = 0;
  while (walked < 20) {
    Dice dice(random.split());
    Schedule schedule = draw_sound_schedule(dice);
    if (!has_a_weight_gradient(schedule)) continue;
    for (bool smaller = true; smaller;) {
      const std::vector<Schedule> next = smaller_schedules(schedule);
      const auto fails = std::find_if(next.begin(), next.end(), has_a_weight_gradient);
      smaller = fails != next.end();
      if (smaller) schedule = Schedule(*fails);
    }
    EXPECT_EQ(size_of(schedule).entries, 1);
    EXPECT_EQ(schedule.ranks.size(), 1u);
    ++walked;
  }
}

}  // namespace
}  // namespace capo::testing
