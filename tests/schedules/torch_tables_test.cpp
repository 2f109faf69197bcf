// torch's own tables, small ones written out; which settings torch refuses; and the laws over a
// grid.

#include "schedules/generators.h"
#include "tests/schedules/order_laws.h"

#include <gtest/gtest.h>

namespace capo::schedules {
namespace {

using namespace order_laws;

using Lines = std::vector<std::string>;

Lines lines(TorchClass torch_class, const TorchSetting& setting) {
  return text(torch_table(torch_class, setting).value());
}

std::string refusal(TorchClass torch_class, const TorchSetting& setting) {
  return torch_table(torch_class, setting).error();
}

TEST(TorchTables, EveryClassHasItsNameWithAndWithoutSchedule) {
  for (const TorchClass torch_class : kTorchClasses) {
    const std::string name(name_of(torch_class));
    EXPECT_EQ(torch_class_named(name), torch_class);
    EXPECT_EQ(torch_class_named("Schedule" + name), torch_class);
  }
  EXPECT_EQ(torch_class_named("Interleaved1F1B"), TorchClass::InterleavedOneFOneB);
  EXPECT_EQ(torch_class_named("Schedule"), std::nullopt);
  EXPECT_EQ(torch_class_named("1f1b"), std::nullopt);
}

TEST(TorchTables, GPipeIsThePublishedOne) {
  EXPECT_EQ(torch_table(TorchClass::GPipe, {.ranks = 3, .microbatches = 2}).value(),
            gpipe({.ranks = 3, .microbatches = 2}).value());
  EXPECT_EQ(refusal(TorchClass::GPipe, {.ranks = 3, .stages_per_rank = 2, .microbatches = 2}),
            "GPipe holds one chunk a rank, not 2");
}

TEST(TorchTables, OneFOneBCountsTheLastRanksForwardsFromZero) {
  // torch 2.11 writes the last rank as 2F1,2B0,2F2,2B1,2F3,2B2: a forward too many by its number,
  // everywhere on that rank, and nothing else.
  EXPECT_EQ(lines(TorchClass::OneFOneB, {.ranks = 3, .microbatches = 3}),
            (Lines{"F0.0 F1.0 F2.0 BW0.0 BW1.0 BW2.0", "F0.0 F1.0 BW0.0 F2.0 BW1.0 BW2.0",
                   "F0.0 BW0.0 F1.0 BW1.0 F2.0 BW2.0"}));
}

TEST(TorchTables, OneFOneBWantsAMicrobatchForEveryRank) {
  EXPECT_EQ(refusal(TorchClass::OneFOneB, {.ranks = 3, .microbatches = 2}),
            "1F1B needs a microbatch for every rank at least, not 2 for 3 ranks");
  EXPECT_EQ(refusal(TorchClass::OneFOneB, {.ranks = 2, .stages_per_rank = 2, .microbatches = 2}),
            "1F1B holds one chunk a rank, not 2");
}

TEST(TorchTables, LoopedBfsGoesBackFromTheLastMicrobatch) {
  EXPECT_EQ(lines(TorchClass::LoopedBfs, {.ranks = 2, .stages_per_rank = 2, .microbatches = 2}),
            Lines(2, "F0.0 F1.0 F0.1 F1.1 BW1.1 BW0.1 BW1.0 BW0.0"));
}

TEST(TorchTables, Interleaved1F1BCutsTheMicrobatchesInEvenRounds) {
  EXPECT_EQ(
      lines(TorchClass::InterleavedOneFOneB, {.ranks = 2, .stages_per_rank = 2, .microbatches = 2}),
      (Lines{"F0.0 F1.0 F0.1 F1.1 BW0.1 BW1.1 BW0.0 BW1.0",
             "F0.0 F1.0 F0.1 BW0.1 F1.1 BW1.1 BW0.0 BW1.0"}));
  // Fewer microbatches than ranks are one round; three ranks and eight microbatches are two of
  // four.
  EXPECT_EQ(
      lines(TorchClass::InterleavedOneFOneB, {.ranks = 2, .stages_per_rank = 2, .microbatches = 1}),
      Lines(2, "F0.0 F0.1 BW0.1 BW0.0"));
  EXPECT_EQ(lines(TorchClass::InterleavedOneFOneB,
                  {.ranks = 3, .stages_per_rank = 2, .microbatches = 8})[2],
            "F0.0 F1.0 F2.0 F3.0 F0.1 BW0.1 F1.1 BW1.1 F2.1 BW2.1 F3.1 BW3.1 F4.0 BW0.0 F5.0 BW1.0 "
            "F6.0 BW2.0 F7.0 BW3.0 F4.1 BW4.1 F5.1 BW5.1 F6.1 BW6.1 F7.1 BW7.1 BW4.0 BW5.0 BW6.0 "
            "BW7.0");
  EXPECT_EQ(refusal(TorchClass::InterleavedOneFOneB,
                    {.ranks = 6, .stages_per_rank = 2, .microbatches = 13}),
            "Interleaved1F1B cuts 13 microbatches on 6 ranks in 2 rounds, which do not come out "
            "even");
}

TEST(TorchTables, InterleavedZeroBubbleKeepsAWeightHalfBackForEveryRankAbove) {
  EXPECT_EQ(lines(TorchClass::InterleavedZeroBubble,
                  {.ranks = 2, .stages_per_rank = 2, .microbatches = 2}),
            (Lines{"F0.0 F1.0 F0.1 F1.1 B0.1 W0.1 B1.1 W1.1 B0.0 W0.0 B1.0 W1.0",
                   "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 W0.1 B0.0 W1.1 B1.0 W0.0 W1.0"}));
  EXPECT_EQ(refusal(TorchClass::InterleavedZeroBubble,
                    {.ranks = 2, .stages_per_rank = 2, .microbatches = 5}),
            "InterleavedZeroBubble cuts 5 microbatches on 2 ranks in 2 rounds, which do not come "
            "out even");
}

TEST(TorchTables, ZbvRunsSplitBackwardsWithTheirWeightHalvesUntilTheDrain) {
  EXPECT_EQ(lines(TorchClass::ZbvZeroBubble, {.ranks = 2, .stages_per_rank = 2, .microbatches = 3}),
            (Lines{"F0.0 F1.0 F2.0 F0.1 B0.1 W0.1 F1.1 B1.1 W1.1 B0.0 W0.0 F2.1 B2.1 W2.1 B1.0 "
                   "W1.0 B2.0 W2.0",
                   "F0.0 F0.1 F1.0 F1.1 B0.1 W0.1 F2.0 B0.0 W0.0 F2.1 B1.1 W1.1 B1.0 B2.1 B2.0 "
                   "W1.0 W2.1 W2.0"}));
}

TEST(TorchTables, ZbvWithFewMicrobatchesIsALongerOneWithGaps) {
  EXPECT_EQ(lines(TorchClass::ZbvZeroBubble, {.ranks = 2, .stages_per_rank = 2, .microbatches = 1}),
            (Lines{"F0.0 F0.1 B0.1 W0.1 B0.0 W0.0", "F0.0 F0.1 B0.1 W0.1 B0.0 W0.0"}));
}

TEST(TorchTables, VSchedulesHaveTwoStagesARank) {
  for (const TorchClass torch_class : {TorchClass::ZbvZeroBubble, TorchClass::DualPipeV}) {
    EXPECT_EQ(refusal(torch_class, {.ranks = 2, .stages_per_rank = 1, .microbatches = 4}),
              std::string(name_of(torch_class)) + " holds 2 chunks a rank, not 1");
  }
  EXPECT_FALSE(
      torch_table(TorchClass::DualPipeV, {.ranks = 2, .stages_per_rank = 2, .microbatches = 3}));
}

TEST(TorchTables, DualPipeVJoinsWhatItOverlaps) {
  EXPECT_EQ(lines(TorchClass::DualPipeV, {.ranks = 1, .stages_per_rank = 2, .microbatches = 3}),
            (Lines{"F0.0 F0.1 F1.0 BW0.1 F1.1&BW0.0 F2.0&BW1.1 F2.1&BW1.0 BW2.1 B2.0 W2.0"}));
}

TEST(TorchTables, EveryTableIsWholeAndFinishes) {
  for (const TorchClass torch_class : kTorchClasses) {
    int made = 0;
    for (std::int32_t ranks = 1; ranks <= 5; ++ranks) {
      for (std::int32_t stages = 1; stages <= 3; ++stages) {
        for (std::int32_t microbatches = 1; microbatches <= 12; ++microbatches) {
          const auto orders = torch_table(
              torch_class,
              {.ranks = ranks, .stages_per_rank = stages, .microbatches = microbatches});
          if (!orders) continue;
          ++made;
          const Setting setting = {.ranks = ranks, .microbatches = microbatches, .chunks = stages};
          const bool is_v =
              torch_class == TorchClass::ZbvZeroBubble || torch_class == TorchClass::DualPipeV;
          EXPECT_EQ(broken_law(*orders, is_v ? wave(setting) : loop(setting)), std::nullopt)
              << name_of(torch_class) << " " << ranks << " " << stages << " " << microbatches;
        }
      }
    }
    EXPECT_GT(made, 30) << name_of(torch_class);
  }
}

}  // namespace
}  // namespace capo::schedules
