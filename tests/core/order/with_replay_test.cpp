#include "core/order/declare.h"

#include "core/diag/lines.h"
#include "core/input/load.h"
#include "core/rules/check.h"

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
  EXPECT_EQ(Lines(both->source).place(second.offset), (LineColumn{2, 1}));
  EXPECT_EQ(both->source.name_at(second.offset), "b");
  EXPECT_EQ(both->source.name_at(rank.order.at(1).offset), "a");
  EXPECT_EQ(Lines(both->source).line_at(second.offset), "-1, 1, -1]");
}

TEST(WithReplay, ResetsAreThoseOfTheReplay) {
  const auto both = with_replay(read("a.order", "capo 1\nrank 0: F1 F1 B1 B1\n"),
                                read("b.order", "capo 1\nrank 0: F1 B1 F1 B1 reset\n"));
  ASSERT_TRUE(both);
  const RankOrder& rank = both->schedule.ranks.at(0);
  ASSERT_EQ(rank.resets.size(), 1U);
  EXPECT_EQ(rank.resets[0].chunk, Reset::kAllChunks);
  EXPECT_EQ(rank.resets[0].behind, 4U);
  EXPECT_EQ(both->source.slice(rank.resets[0].span), "reset");
  EXPECT_EQ(both->source.name_at(rank.resets[0].span.offset), "b.order");
}

TEST(WithReplay, AnOrderThatIsOnlyCapturedResetsNothing) {
  const auto both = with_replay(read("a.order", "capo 1\nrank 0: F1 F1 B1 B1 reset1.0\n"),
                                read("b.order", "capo 1\nrank 0: F1 B1 F1 B1\n"));
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error(),
            "rank 0 of a.order resets graphs, which happens between replays, and the order is only "
            "captured: resets stand in the order that is replayed");
}

TEST(WithReplay, AChunkThatIsResetIsCountedAsItsEntriesAre) {
  const std::string head = "capo 1\nmicrobatches 1\nplacement custom\nrank 0 stages ";
  const auto both =
      with_replay(read("a.order", head + "0,1\nrank 0: F1.0 F2.0 B2.0 B1.0\n"),
                  read("b.order", head + "1,0\nrank 0: F2.0 F1.0 B1.0 reset1 B2.0\n"));
  ASSERT_TRUE(both);
  EXPECT_EQ(both->schedule.ranks.at(0).resets.at(0).chunk, 2);
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

TEST(WithReplay, AFileWithBothOrdersGivesTheOneThatIsAskedFor) {
  const std::string recorded = "capo 1\nrank 0: F1 F1 B1 B1\nrank 0 replay: F1 B1 F1 B1\n";
  const auto replayed = with_replay(read("a", "[1, 1, -1, -1]"), read("b.order", recorded));
  ASSERT_TRUE(replayed);
  EXPECT_NE((*replayed->schedule.ranks[0].replay)[1].kind, Kind::Forward);
  const auto captured = with_replay(read("b.order", recorded), read("a", "[1, 1, -1, -1]"));
  ASSERT_TRUE(captured);
  EXPECT_EQ((*captured->schedule.ranks[0].replay)[1].kind, Kind::Forward);
}

TEST(WithReplay, ChunksThatOnlyTheReplayRunsAreKnown) {
  const auto both = with_replay(read("a", "[1, -1]"), read("b", "[1, 2, -2, -1]"));
  ASSERT_TRUE(both);
  EXPECT_EQ(both->schedule.ranks.at(0).chunks, 2);
  EXPECT_EQ(check(*both).verdict, Verdict::Rejected);
}

TEST(WithReplay, ChunksThatOnlyTheReplayRunsAreStagesToo) {
  const auto both =
      with_replay(read("a.order", "capo 1\nplacement chain\nrank 0: F1 B1\nrank 1: F1 B1\n"),
                  read("b.order", "capo 1\nrank 0: F1 F2 B2 B1\nrank 1: F1 B1\n"));
  ASSERT_TRUE(both);
  EXPECT_EQ(both->schedule.ranks.at(0).stages, (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(both->schedule.ranks.at(1).stages, (std::vector<std::int32_t>{2}));
  EXPECT_EQ(check(*both).verdict, Verdict::Rejected);
}

TEST(WithReplay, ChunksOfTablesAreTheSameWhereTheirStagesAre) {
  const Input capture = read("a.csv", "0F0,2F0,2B0,0B0\n1F0,1B0\n");
  const auto both = with_replay(capture, read("b.csv", "2F0,2B0\n1F0,1B0\n"));
  ASSERT_TRUE(both);
  EXPECT_EQ(both->schedule.ranks.at(0).replay->at(0).chunk, 2);
  EXPECT_EQ(check(*both).verdict, Verdict::Rejected) << "stage 0 is never replayed";
}

TEST(WithReplay, TablesOfOtherStagesAreNoReplay) {
  const auto error_of = [](const char* capture, const char* replay) {
    const auto both = with_replay(read("a.csv", capture), read("b.csv", replay));
    return both ? "" : both.error();
  };
  EXPECT_EQ(error_of("0F0,1F0,1B0,0B0\n", "5F0,7F0,7B0,5B0\n"),
            "b.csv runs stage 5 on rank 0, and a.csv does not");
  EXPECT_EQ(error_of("0F0,0B0\n1F0,1B0\n", "1F0,1B0\n0F0,0B0\n"),
            "b.csv runs stage 1 on rank 0, and a.csv does not");
  EXPECT_EQ(error_of("0F0,0B0\n1F0,1B0\n", "0F0,0B0\n1F0,1B0,3F0\n"),
            "b.csv runs stage 3 on rank 1, and a.csv does not");
}

TEST(WithReplay, AListRunsTheChunksOfTheTableItReplays) {
  const Input table = read("a.csv", "0F0,1F0,1B0,0B0\n");
  EXPECT_EQ(check(*with_replay(table, read("b", "[1, 2, -2, -1]"))).verdict, Verdict::Accepted);
  const auto more = with_replay(table, read("b", "[1, 2, 3, -3, -2, -1]"));
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error(), "b runs chunk 3 on rank 0, which has 2 in a.csv");
}

}  // namespace
}  // namespace capo
