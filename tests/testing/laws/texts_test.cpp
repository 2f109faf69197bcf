// Laws of texts: they hold of what .order text can say, and say why not of the rest.

#include <capo/testing/laws/texts.h>

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

TEST(Texts, OfWhatHasNoNotationNameTheReason) {
  EXPECT_NE(laws::order_text_reads_back(one_forward(0)), std::nullopt);
  EXPECT_NE(laws::json_reads_back(one_forward(0)), std::nullopt);
  EXPECT_NE(laws::order_text_reads_back(Schedule{}), std::nullopt);
}

}  // namespace
}  // namespace capo::testing
