// Interleaved 1F1B with Megatron's groups, and looped BFS: orders written by hand, which groups are
// accepted, and the laws of every accepted one.

#include "schedules/generators.h"
#include "tests/schedules/order_laws.h"

#include <gtest/gtest.h>

namespace capo::schedules {
namespace {

using namespace order_laws;

using Lines = std::vector<std::string>;

TEST(Interleaved, AGroupIsThroughOneChunkBeforeItEntersTheNext) {
  const auto orders = interleaved_one_f_one_b({.ranks = 2, .microbatches = 4, .chunks = 2}).value();
  EXPECT_EQ(text(orders), (Lines{"F0.0 F1.0 F0.1 F1.1 F2.0 BW0.1 F3.0 BW1.1 F2.1 BW0.0 F3.1 BW1.0 "
                                 "BW2.1 BW3.1 BW2.0 BW3.0",
                                 "F0.0 F1.0 F0.1 BW0.1 F1.1 BW1.1 F2.0 BW0.0 F3.0 BW1.0 F2.1 BW2.1 "
                                 "F3.1 BW3.1 BW2.0 BW3.0"}));
}

TEST(Interleaved, TheLastGroupIsWhatIsLeft) {
  const auto orders =
      interleaved_one_f_one_b({.ranks = 1, .microbatches = 3, .chunks = 2}, 2).value();
  EXPECT_EQ(text(orders), (Lines{"F0.0 F1.0 F0.1 BW0.1 F1.1 BW1.1 F2.0 BW0.0 F2.1 BW1.0 BW2.1 "
                                 "BW2.0"}));
}

TEST(Interleaved, NoRankRunsAheadOfMoreThanThereIs) {
  const auto orders = interleaved_one_f_one_b({.ranks = 2, .microbatches = 2, .chunks = 2}).value();
  EXPECT_EQ(text(orders[0]), "F0.0 F1.0 F0.1 F1.1 BW0.1 BW1.1 BW0.0 BW1.0");
}

TEST(Interleaved, TheGroupIsAsManyAsRanksUnlessStated) {
  const Setting setting = {.ranks = 3, .microbatches = 12, .chunks = 2};
  EXPECT_EQ(interleaved_one_f_one_b(setting).value(), interleaved_one_f_one_b(setting, 3).value());
  EXPECT_NE(interleaved_one_f_one_b(setting).value(), interleaved_one_f_one_b(setting, 4).value());
}

TEST(Interleaved, GroupsAreRefusedInWords) {
  const auto refusal = [](const Setting& setting, std::optional<std::int32_t> group) {
    return interleaved_one_f_one_b(setting, group).error();
  };
  EXPECT_EQ(refusal({.ranks = 4, .microbatches = 8, .chunks = 2}, 3),
            "1f1b-interleaved needs groups of as many microbatches as ranks: 3 < 4");
  EXPECT_EQ(refusal({.ranks = 4, .microbatches = 3, .chunks = 2}, std::nullopt),
            "1f1b-interleaved fills one group of 4 microbatches at least, not 3");
  EXPECT_EQ(refusal({.ranks = 4, .microbatches = 10, .chunks = 2}, std::nullopt),
            "1f1b-interleaved cannot end with a group smaller than its 4 ranks: 10 microbatches in "
            "groups of 4 leave 2");
  EXPECT_EQ(refusal({.ranks = 4, .microbatches = 10, .chunks = 0}, std::nullopt),
            "1f1b-interleaved needs one chunk a rank at least, not 0");
}

TEST(Interleaved, EveryAcceptedGroupIsWholeAndFinishes) {
  for (std::int32_t ranks = 1; ranks <= 4; ++ranks) {
    for (std::int32_t chunks = 1; chunks <= 3; ++chunks) {
      for (std::int32_t microbatches = 1; microbatches <= 12; ++microbatches) {
        for (std::int32_t group = 1; group <= 12; ++group) {
          const Setting setting = {.ranks = ranks, .microbatches = microbatches, .chunks = chunks};
          const auto orders = interleaved_one_f_one_b(setting, group);
          const bool accepted = ranks <= group && group <= microbatches &&
                                (microbatches % group == 0 || microbatches % group >= ranks);
          ASSERT_EQ(orders.has_value(), accepted) << ranks << " " << microbatches << " " << group;
          if (!accepted) continue;
          EXPECT_EQ(broken_law(*orders, loop(setting)), std::nullopt)
              << ranks << " " << chunks << " " << microbatches << " " << group;
          for (std::int32_t rank = 0; rank < ranks; ++rank) {
            EXPECT_EQ(
                most_held(*orders)[static_cast<std::size_t>(rank)],
                std::min(chunks * microbatches, 2 * (ranks - 1 - rank) + (chunks - 1) * group + 1));
          }
        }
      }
    }
  }
}

TEST(Interleaved, TheBubbleShrinksWithTheNumberOfChunks) {
  for (std::int32_t ranks = 1; ranks <= 6; ++ranks) {
    for (std::int32_t chunks = 1; chunks <= 4; ++chunks) {
      const Setting setting = {.ranks = ranks, .microbatches = 3 * ranks, .chunks = chunks};
      const auto orders = interleaved_one_f_one_b(setting).value();
      EXPECT_EQ(makespan(orders, loop(setting)),
                3 * setting.microbatches * chunks + 3 * (ranks - 1));
    }
  }
}

TEST(LoopedBfs, RunsChunkByChunkThereAndBack) {
  const auto orders = looped_bfs({.ranks = 2, .microbatches = 2, .chunks = 2}).value();
  EXPECT_EQ(text(orders), Lines(2, "F0.0 F1.0 F0.1 F1.1 BW0.1 BW1.1 BW0.0 BW1.0"));
}

TEST(LoopedBfs, WithOneChunkItIsGPipe) {
  const Setting setting = {.ranks = 3, .microbatches = 5};
  EXPECT_EQ(looped_bfs(setting).value(), gpipe(setting).value());
}

TEST(LoopedBfs, EveryOrderIsWholeAndFinishes) {
  for (std::int32_t ranks = 1; ranks <= 5; ++ranks) {
    for (std::int32_t microbatches = 1; microbatches <= 8; ++microbatches) {
      for (std::int32_t chunks = 1; chunks <= 4; ++chunks) {
        const Setting setting = {.ranks = ranks, .microbatches = microbatches, .chunks = chunks};
        const auto orders = looped_bfs(setting).value();
        EXPECT_EQ(broken_law(orders, loop(setting)), std::nullopt);
        EXPECT_EQ(most_held(orders), std::vector<std::int64_t>(static_cast<std::size_t>(ranks),
                                                               microbatches * chunks));
      }
    }
  }
}

TEST(LoopedBfs, NothingIsMadeOfNothing) {
  EXPECT_EQ(looped_bfs({.chunks = 0}).error(), "looped-bfs needs one chunk a rank at least, not 0");
}

}  // namespace
}  // namespace capo::schedules
