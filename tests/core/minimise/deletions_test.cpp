
#include "core/minimise/edits.h"
#include "core/minimise/settle.h"
#include "core/text/order_text.h"
#include "testing/generators/sound_schedule.h"
#include "testing/minimise_shrink.h"
#include "tests/support/check_text.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace capo {
namespace {

using testing_support::check_text;

Schedule read(const std::string& text) {
  return check_text(text).input.schedule;
}

TEST(Deletions, AMicrobatchGoesEverywhereAndTheOthersCloseUp) {
  const Schedule before = read(
      "capo 1\nmicrobatches 3\nrank 0: F1.2 F1.0 F1.1 B1.1 B1.2 B1.0\n"
      "rank 0 replay: F1.0 F1.1 F1.2 B1.0 B1.1 B1.2\n");
  EXPECT_EQ(print_order_file(without_microbatches(before, std::array{1})),
            "capo 1\nranks 1\nmicrobatches 2\nrank 0: F1.1 F1.0 B1.1 B1.0\n"
            "rank 0 replay: F1.0 F1.1 B1.0 B1.1\n");
}

TEST(Deletions, ResetsStayBetweenTheEntriesThatAreLeft) {
  const Schedule before =
      read("capo 1\nrank 0: F1.0 F1.1 F2.0 reset1.1 B2.0 B1.0 reset2 B1.1 reset1.0 reset\n");
  EXPECT_EQ(print_order_file(without_microbatches(before, std::array{1})),
            "capo 1\nranks 1\nrank 0: F1.0 F2.0 B2.0 B1.0 reset2 reset1.0 reset\n");
  EXPECT_EQ(print_order_file(*without_chunks(before, std::array{HeldChunk{0, 1}})),
            "capo 1\nranks 1\nrank 0: F1.0 B1.0 reset1 reset\n");
  EXPECT_EQ(print_order_file(without_entries(before, 0, From::Both, 0, 3)),
            "capo 1\nranks 1\nrank 0: reset1.1 B2.0 B1.0 reset2 B1.1 reset1.0 reset\n");
  EXPECT_EQ(resets_in(before), 4U);
  EXPECT_EQ(print_order_file(without_resets(before, 1, 3)),
            "capo 1\nranks 1\nrank 0: F1.0 F1.1 F2.0 reset1.1 B2.0 B1.0 B1.1 reset\n");
  EXPECT_EQ(print_order_file(*with_only(before, {Kind::Forward, 1, 1}, {Kind::Forward, 2, 0})),
            "capo 1\nranks 1\nrank 0: F1.0 F2.0 reset1.0 B2.0 reset2 B1.0 reset\n");
}

TEST(Deletions, ResetsAreOfTheReplay) {
  const Schedule before =
      read("capo 1\nrank 0: F1.0 B1.0 F1.1 B1.1\nrank 0 replay: F1.0 F1.1 B1.0 reset1.0 B1.1\n");
  EXPECT_EQ(print_order_file(without_entries(before, 0, From::Capture, 0, 2)),
            "capo 1\nranks 1\nrank 0: F1.1 B1.1\nrank 0 replay: F1.0 F1.1 B1.0 reset1.0 B1.1\n");
  EXPECT_EQ(print_order_file(without_entries(before, 0, From::Both, 0, 2)),
            "capo 1\nranks 1\nrank 0: F1.1 B1.1\nrank 0 replay: F1.1 reset1.0 B1.1\n");
  EXPECT_EQ(print_order_file(without_entries(before, 0, From::Replay, 1, 3)),
            "capo 1\nranks 1\nrank 0: F1.0 B1.0 F1.1 B1.1\nrank 0 replay: F1.0 reset1.0 B1.1\n");
}

TEST(Deletions, CountedMicrobatchesAreCountedAnew) {
  const Schedule after = without_microbatches(read("[1, 1, -1, 1, -1, -1]"), std::array{0});
  EXPECT_EQ(print_order_file(after), "capo 1\nranks 1\nrank 0: F1 F1 B1 B1\n");
  EXPECT_EQ(after.ranks.front().order.back().microbatch, 1);
}

TEST(Deletions, AChunkTakesWhatIsDeclaredOfItAlong) {
  const Schedule before =
      read("capo 1\nrank 0 layers 1,2,3\nrank 0 delayed 3\nrank 0: F1 F2 F3 B3 W3 B2 B1\n");
  const auto after = without_chunks(before, std::array{HeldChunk{0, 2}});
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(print_order_file(*after),
            "capo 1\nranks 1\nrank 0 chunks 2\nrank 0 layers 1,3\nrank 0 delayed 2\n"
            "rank 0: F1 F2 B2 W2 B1\n");
}

TEST(Deletions, OneChunkOfALoopCannotGoButALayerCan) {
  const Schedule loop = read(
      "capo 1\nstages 4\nplacement loop\nrank 0: F1.0 F2.0 B2.0 B1.0\nrank 1: F1.0 F2.0 B2.0 "
      "B1.0\n");
  EXPECT_FALSE(without_chunks(loop, std::array{HeldChunk{0, 2}}).has_value());
  const auto after = without_layers(loop, std::array{1});
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(print_order_file(*after),
            "capo 1\nranks 2\nstages 2\nplacement loop\nrank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\n");
}

TEST(Deletions, AStageOfACustomPlacementLeavesNoGap) {
  const Schedule custom = read(
      "capo 1\nplacement custom\nrank 0 stages 0,3\nrank 1 stages 2,1\n"
      "rank 0: F1.0 F2.0 B2.0 B1.0\nrank 1: F2.0 F1.0 B1.0 B2.0\n");
  const auto after = without_chunks(custom, std::array{HeldChunk{1, 2}});
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(after->ranks[0].stages, (std::vector<std::int32_t>{0, 2}));
  EXPECT_EQ(after->ranks[1].stages, (std::vector<std::int32_t>{1}));
}

TEST(Deletions, ARankTakesTheTransfersAlongThatHaveNoOtherEndWithoutIt) {
  const Schedule chain = read(
      "capo 1\nplacement chain\n"
      "rank 0: F1.0 send-F1.0 recv-B1.0 B1.0\n"
      "rank 1: recv-F1.0 F1.0 send-F1.0 recv-B1.0 B1.0 send-B1.0\n"
      "rank 2: recv-F1.0 F1.0 B1.0 send-B1.0\n");
  const auto two = without_ranks(chain, 1, 2);
  ASSERT_TRUE(two.has_value());
  EXPECT_EQ(print_order_file(*two),
            "capo 1\nranks 2\nplacement chain\n"
            "rank 0: F1.0 send-F1.0 recv-B1.0 B1.0\n"
            "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0\n");
  const auto one = without_ranks(*two, 1, 2);
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(print_order_file(*one), "capo 1\nranks 1\nplacement chain\nrank 0: F1.0 B1.0\n");
  EXPECT_FALSE(without_ranks(*one, 0, 1).has_value());
}

TEST(Deletions, ATransferThatLackedItsOtherEndBeforeStays) {
  const Schedule chain =
      read("capo 1\nplacement chain\nrank 0: recv-F1.0 F1.0 B1.0\nrank 1: F1.0 B1.0\n");
  const auto one = without_ranks(chain, 1, 2);
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->ranks[0].order.size(), 3u);
}

TEST(Deletions, AnEntryGoesFromBothOrdersOrFromOne) {
  const Schedule before =
      read("capo 1\nrank 0: F1.0 F1.1 B1.0 B1.1\nrank 0 replay: F1.1 B1.1 F1.0 B1.0\n");
  const auto lengths = [&](From from) {
    const Schedule after = without_entries(before, 0, from, 1, 2);
    return std::pair(after.ranks[0].order.size(), after.ranks[0].replay->size());
  };
  EXPECT_EQ(lengths(From::Both), std::pair(std::size_t{3}, std::size_t{3}));
  EXPECT_EQ(lengths(From::Capture), std::pair(std::size_t{3}, std::size_t{4}));
  EXPECT_EQ(lengths(From::Replay), std::pair(std::size_t{4}, std::size_t{3}));
}

TEST(Deletions, WhatIsLeftOfACompositeStaysOneWhileItHasTwo) {
  std::vector<Entry> order =
      read("capo 1\nrank 0: (F1.0 F1.1 F1.2) (F1.3 B1.0) B1.1\n").ranks.front().order;
  erase_entries(order, [](const Entry& entry) {
    return entry.kind == Kind::Forward && (entry.microbatch == 0 || entry.microbatch == 3);
  });
  ASSERT_EQ(order.size(), 4u);
  EXPECT_EQ(order[0].group, Group::Opens);
  EXPECT_EQ(order[1].group, Group::Continues);
  EXPECT_EQ(order[2].group, Group::Alone);
}

TEST(Deletions, WithoutItsWeightGradientsASplitBackwardIsWhole) {
  const Schedule mixed = read("capo 1\nrank 0 mixed 1\nrank 0: F1.0 I1.0 W1.0 F1.1 B1.1\n");
  const Schedule after = without_weights(mixed, 0, 1);
  EXPECT_EQ(print_order_file(after),
            "capo 1\nranks 1\nrank 0 delayed none\nrank 0: F1.0 B1.0 F1.1 B1.1\n");
}

TEST(Deletions, OfTwoCellsEachIsItsChunksFirst) {
  const Schedule before = read("[1, 1, 2, -1, 2, -2, -1, -2]");
  const auto after =
      with_only(before, {.chunk = 1, .microbatch = 1}, {.chunk = 2, .microbatch = 0});
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(print_order_file(*after), "capo 1\nranks 1\nrank 0: F1 F2 B2 B1\n");
}

TEST(Deletions, ALostWeightGradientChangesWhoDelaysWhereNothingDeclaresIt) {
  const Schedule inferred = read("[1, -1, -1.5]");
  EXPECT_FALSE(keeps_delays(inferred, without_entries(inferred, 0, From::Both, 2, 3)));
  const Schedule declared = read("capo 1\nrank 0 delayed 1\nrank 0: F1 B1 W1\n");
  EXPECT_TRUE(keeps_delays(declared, without_entries(declared, 0, From::Both, 2, 3)));
}

// The laws, on sound schedules of every topology.

TEST(Deletions, WhatIsSmallerIsWhatItsTextSays) {
  rc::Random random(7);
  std::size_t compared = 0;
  for (int i = 0; i < 100; ++i) {
    testing::Dice dice(random.split());
    const Schedule schedule = testing::draw_sound_schedule(dice);
    for (const Schedule& smaller : testing::smaller_schedules(schedule)) {
      const std::string text = print_order_file(smaller);
      const auto again = load({.name = "a.order", .text = text}, {.form = TextForm::OrderFile});
      ASSERT_TRUE(again) << text;
      ASSERT_TRUE(same_meaning(smaller, again->schedule)) << text;
      ++compared;
    }
  }
  EXPECT_GT(compared, 1000u);
}

TEST(Deletions, WhatIsSoundStaysSound) {
  rc::Random random(11);
  std::size_t checked = 0;
  for (int i = 0; i < 200; ++i) {
    testing::Dice dice(random.split());
    const Schedule schedule = testing::draw_sound_schedule(dice);
    for (const Schedule& smaller : testing::smaller_sound_schedules(schedule)) {
      const auto after = check_text(print_order_file(smaller));
      for (const Diagnostic& finding : after.result.diagnostics.kept()) {
        // The generator promises these families; the others have further conditions.
        const bool promised = finding.family == Family::Shape ||
                              finding.family == Family::Dependencies ||
                              finding.family == Family::Placement;
        if (!promised) continue;
        ADD_FAILURE() << finding.rule << " " << finding.message << "\n"
                      << print_order_file(schedule) << "became\n"
                      << print_order_file(smaller);
      }
      ++checked;
    }
  }
  EXPECT_GT(checked, 1000u);
}

}  // namespace
}  // namespace capo
