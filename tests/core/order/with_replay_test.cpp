#include <capo/core/order/with_replay.h>

#include <capo/core/rules/check.h>
#include <capo/core/text/load.h>

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace capo {
namespace {

Input read(std::string name, std::string text) {
  auto input = load(Source{.name = std::move(name), .text = std::move(text)}, {});
  EXPECT_TRUE(input);
  return std::move(*input);
}

TEST(WithReplay, TheSecondGivesTheReplayWithItsOwnPlaces) {
  const auto both = with_replay(read("a", "[1, 1, -1, -1]"), read("b", "[1,\n-1, 1, -1]"));
  ASSERT_TRUE(both);
  const RankOrder& rank = both->schedule.ranks.at(0);
  ASSERT_TRUE(rank.replay);
  EXPECT_EQ(rank.order.size(), 4U);
  const Span second = rank.replay->at(1).span();
  EXPECT_EQ(both->source.slice(second), "-1");
  EXPECT_EQ(both->source.line_column(second.offset), (LineColumn{2, 1}));
  EXPECT_EQ(both->source.name_at(second.offset), "b");
  EXPECT_EQ(both->source.name_at(rank.order.at(1).offset), "a");
  EXPECT_EQ(both->source.line_at(second.offset), "-1, 1, -1]");
}

TEST(WithReplay, FormsMayDiffer) {
  const auto both =
      with_replay(read("a", "[1, 1, -1, -1]"),
                  read("b.order", "capo 1\nmicrobatches 2\nrank 0: F1.0 B1.0 F1.1 B1.1\n"));
  ASSERT_TRUE(both);
  EXPECT_EQ(both->schedule.naming, Naming::Named);
  EXPECT_EQ(check(*both).verdict, Verdict::Accepted);
}

TEST(WithReplay, TheTwoHaveTheSameRanks) {
  const auto both = with_replay(read("a", "[1, -1]"),
                                read("b.order", "capo 1\nranks 2\nrank 0: F1 B1\nrank 1: F1 B1\n"));
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error(), "a has 1 ranks, b.order has 2");
}

TEST(WithReplay, NeitherHasAReplayAlready) {
  const std::string twice = "capo 1\nrank 0: F1 B1\nrank 0 replay: F1 B1\n";
  EXPECT_FALSE(with_replay(read("a", "[1, -1]"), read("b.order", twice)));
  EXPECT_FALSE(with_replay(read("b.order", twice), read("a", "[1, -1]")));
}

TEST(WithReplay, ChunksThatOnlyTheReplayRunsAreKnown) {
  const auto both = with_replay(read("a", "[1, -1]"), read("b", "[1, 2, -2, -1]"));
  ASSERT_TRUE(both);
  EXPECT_EQ(both->schedule.ranks.at(0).chunks, 2);
  EXPECT_EQ(check(*both).verdict, Verdict::Rejected);
}

}  // namespace
}  // namespace capo
