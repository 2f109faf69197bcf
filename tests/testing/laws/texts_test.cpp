// Laws of texts: they hold of what .order text can say, and say why not of the rest.

#include "testing/laws/texts.h"

#include "core/minimise/settle.h"

#include <gtest/gtest.h>

namespace capo::testing {
namespace {

Schedule one_forward(std::int32_t chunk) {
  Schedule schedule{.naming = Naming::Named};
  RankOrder& rank = schedule.ranks.emplace_back();
  rank.chunks = 1;
  rank.order = {{.chunk = chunk, .microbatch = 0, .kind = Kind::Forward}};
  return schedule;
}

TEST(Texts, OfASmallOrderReadBack) {
  EXPECT_EQ(laws::order_text_reads_back(one_forward(1)), std::nullopt);
  EXPECT_EQ(laws::json_reads_back(one_forward(1)), std::nullopt);
}

// A text that lists the stages of a rank says how many chunks it has, declared or not.
TEST(Texts, OfCustomStagesReadBack) {
  for (const bool declared : {false, true}) {
    Schedule schedule = one_forward(1);
    schedule.topology = Topology::Custom;
    schedule.ranks.push_back(schedule.ranks.front());
    for (std::int32_t r = 0; r < 2; ++r) {
      schedule.ranks[static_cast<std::size_t>(r)].stages = {r};
      schedule.ranks[static_cast<std::size_t>(r)].chunks_declared = declared;
    }
    EXPECT_EQ(laws::order_text_reads_back(schedule), std::nullopt);
    EXPECT_EQ(laws::json_reads_back(schedule), std::nullopt);
    settle(schedule);
    EXPECT_TRUE(schedule.ranks[0].chunks_declared) << "as its reader has it";
    EXPECT_EQ(laws::order_text_reads_back(schedule), std::nullopt);
  }
}

TEST(Texts, OfWhatHasNoNotationNameTheReason) {
  EXPECT_NE(laws::order_text_reads_back(one_forward(0)), std::nullopt);
  EXPECT_NE(laws::json_reads_back(one_forward(0)), std::nullopt);
  EXPECT_NE(laws::order_text_reads_back(Schedule{}), std::nullopt);
}

}  // namespace
}  // namespace capo::testing
