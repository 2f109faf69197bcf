#include "core/text/order_text.h"

#include <gtest/gtest.h>

#include <string>

namespace capo {
namespace {

Schedule read(const std::string& text) {
  return read_order_file("capo 1\n" + text, {}).value();
}

std::string refusal(const std::string& text) {
  const auto schedule = read_order_file(text, {});
  if (schedule) return "";
  const Diagnostic& finding = schedule.error().finding;
  return finding.message + " @" + std::to_string(finding.labels.at(0).span.offset);
}

TEST(OrderReader, ReadsTheFactsOfAllRanksAndOfOne) {
  const Schedule schedule = read(
      "ranks 2\nmicrobatches 3\nplacement v\nchunks 2\nlayers 1,2\ndelayed 1\n"
      "rank 1 layers 2\nrank 0: F1 B1 W1\nrank 1: F2\n  B2 # goes on\n");
  EXPECT_EQ(schedule.topology, Topology::V);
  EXPECT_EQ(schedule.microbatches, 3);
  ASSERT_EQ(schedule.ranks.size(), 2U);
  EXPECT_EQ(schedule.ranks[0].layers.form, Layers::Form::List);
  EXPECT_EQ(schedule.ranks[1].layers.form, Layers::Form::Count);
  EXPECT_EQ(schedule.ranks[1].order.size(), 2U);
  EXPECT_EQ(*schedule.ranks[0].delay, (std::vector{Delay::Always, Delay::Never}));
  EXPECT_EQ(schedule.ranks[0].stages, (std::vector<std::int32_t>{0, 3}));
  EXPECT_EQ(schedule.ranks[1].stages, (std::vector<std::int32_t>{1, 2}));
}

TEST(OrderReader, ReadsCompositesIdleSlotsAndReplay) {
  const Schedule schedule =
      read("rank 0: F1.0 . (F1.1 B1.0) B1.1\nrank 0 replay: F1.0 B1.0 F1.1 B1.1\n");
  const auto& order = schedule.ranks.at(0).order;
  EXPECT_EQ(order.at(1).kind, Kind::Idle);
  EXPECT_EQ(order.at(2).group, Group::Opens);
  EXPECT_EQ(order.at(3).group, Group::Continues);
  EXPECT_EQ(order.at(4).group, Group::Alone);
  EXPECT_EQ(schedule.ranks.at(0).replay->size(), 4U);
  EXPECT_EQ(schedule.naming, Naming::Named);
}

TEST(OrderReader, CountsDispatchAndCombineByThemselves) {
  const Schedule schedule = read(
      "rank 0: F1 dispatch-F1 F1 dispatch-F1 combine-F1 dispatch-B1 B1 combine-F1 combine-B1\n");
  std::vector<std::int32_t> microbatches;
  for (const Entry& entry : schedule.ranks.at(0).order) microbatches.push_back(entry.microbatch);
  EXPECT_EQ(microbatches, (std::vector<std::int32_t>{0, 0, 1, 1, 0, 0, 0, 1, 0}));
}

TEST(OrderReader, PutsResetsBetweenTheEntriesThatAreReplayed) {
  const Schedule schedule = read("rank 0: F1 F1 reset1.1 (B1 B1) reset1 reset\n");
  const RankOrder& rank = schedule.ranks.at(0);
  EXPECT_EQ(rank.order.size(), 4U);
  ASSERT_EQ(rank.resets.size(), 3U);
  EXPECT_EQ(rank.resets[0].behind, 2U);
  EXPECT_EQ(rank.resets[0].microbatch, 1);
  EXPECT_EQ(rank.resets[1].behind, 4U);
  EXPECT_EQ(rank.resets[1].microbatch, kNoMicrobatch);
  EXPECT_EQ(rank.resets[2].chunk, Reset::kAllChunks);
  EXPECT_EQ(print_order_file(schedule),
            "capo 1\nranks 1\nrank 0: F1 F1 reset1.1 (B1 B1) reset1 reset\n");
  const std::string replayed = "capo 1\nranks 1\nrank 0: F1 B1\nrank 0 replay: reset F1 B1\n";
  EXPECT_EQ(print_order_file(read("rank 0: F1 B1\nrank 0 replay: reset F1 B1\n")), replayed);
}

TEST(OrderReader, RefusesResetsThatCouldNotBe) {
  EXPECT_EQ(refusal("capo 1\nrank 0: (F1 reset1 B1)\n"),
            "a reset is no action, and runs together with none @19");
  EXPECT_EQ(refusal("capo 1\nrank 0: F1 reset0 B1\n"), "chunks are counted from 1 @18");
  EXPECT_EQ(refusal("capo 1\nrank 0: F1 reset B1\nrank 0 replay: F1 B1\n"),
            "graphs are reset between replays, and this order is only captured @18");
  EXPECT_EQ(refusal("capo 1\nreset1 F1 B1\n"),
            "`reset1` is an action, and a colon is missing before it @7");
  EXPECT_EQ(refusal("capo 1\nrank 0: F1 B1 reset4194305\n"),
            "`reset4194305` has a number above 4194304 @21");
  EXPECT_EQ(refusal("capo 1\nrank 0: F1 B1 reset1.4194305\n"),
            "`reset1.4194305` has a number above 4194304 @21");
}

TEST(OrderReader, RefusesTheRestWithItsPlace) {
  EXPECT_EQ(refusal("rank 0: F1\n"), "an .order file begins with `capo 1` @0");
  EXPECT_EQ(refusal("capo 2\n"), "this capo reads version 1 of the language @5");
  EXPECT_EQ(refusal("capo 1\n"), "the file has no rank @0");
  EXPECT_EQ(refusal("capo 1\nrank 0: F1 X1\n"), "`X1` is no action @18");
  EXPECT_EQ(refusal("capo 1\nrank 0: F1 B1.0\n"),
            "this action names its microbatch, those before it do not @18");
  EXPECT_EQ(refusal("capo 1\nrank 0: (F1\n"), "this composite is never closed @15");
  EXPECT_EQ(refusal("capo 1\nrank 1: F1 B1\n"), "rank 0 has no order @7");
  EXPECT_EQ(refusal("capo 1\nlayer 2\nrank 0: F1 B1\n"),
            "`layer` is no statement of the order language @7");
  EXPECT_EQ(refusal("capo 1\nmixed 1\nrank 0: F1 B1\n"),
            "a mixed chunk needs named microbatches @13");
}

TEST(OrderReader, IsKnownByItsFirstWord) {
  EXPECT_TRUE(looks_like_order_file("# hello\n\ncapo 1\n"));
  EXPECT_FALSE(looks_like_order_file("[1, -1]"));
}

}  // namespace
}  // namespace capo
