// 1F1B on a V: orders written by hand, its memory, and the laws of every setting that is accepted.

#include "schedules/generators.h"
#include "tests/schedules/v_laws.h"

#include <gtest/gtest.h>

namespace capo::schedules {
namespace {

using namespace order_laws;

using Lines = std::vector<std::string>;

TEST(OneFOneBV, TheSecondChunkComesBackFromTheLastRank) {
  EXPECT_EQ(text(one_f_one_b_v(v_of(2, 2)).value()),
            (Lines{"F0.0 F1.0 F0.1 BW0.1 F1.1 BW1.1 BW0.0 BW1.0",
                   "F0.0 F0.1 F1.0 F1.1 BW0.1 BW0.0 BW1.1 BW1.0"}));
}

TEST(OneFOneBV, OnOneRankAMicrobatchGoesThereAndBack) {
  EXPECT_EQ(text(one_f_one_b_v(v_of(1, 1)).value()), Lines{"F0.0 F0.1 BW0.1 BW0.0"});
}

TEST(OneFOneBV, TheCoolDownIsTight) {
  EXPECT_EQ(text(one_f_one_b_v(v_of(2, 3)).value()),
            (Lines{"F0.0 F1.0 F2.0 F0.1 BW0.1 F1.1 BW1.1 BW0.0 F2.1 BW2.1 BW1.0 BW2.0",
                   "F0.0 F0.1 F1.0 F1.1 BW0.1 BW0.0 F2.0 F2.1 BW1.1 BW1.0 BW2.1 BW2.0"}));
}

TEST(OneFOneBV, CostsAndMemoryDoNotMatter) {
  expect_costs_and_memory_do_not_matter(one_f_one_b_v);
}

TEST(OneFOneBV, RefusalsSayWhatIsWrong) {
  EXPECT_EQ(one_f_one_b_v({.ranks = 2, .microbatches = 2, .chunks = 3}).error(),
            "1f1b-v holds 2 chunks a rank, not 3");
  EXPECT_EQ(one_f_one_b_v(v_of(0, 2)).error(), "1f1b-v needs one rank at least, not 0");
}

TEST(OneFOneBV, EveryOrderIsWholeAndFinishes) {
  expect_whole_and_finishing(one_f_one_b_v);
}

TEST(OneFOneBV, EveryRankHoldsTwoThirdsOfItsRanksAndALittle) {
  for (std::int32_t ranks = 1; ranks <= 16; ++ranks) {
    const std::int64_t microbatches_held = (2 * ranks + 3) / 3;
    EXPECT_EQ(most_held(one_f_one_b_v(v_of(ranks, 3 * ranks)).value()),
              std::vector<std::int64_t>(static_cast<std::size_t>(ranks), 2 * microbatches_held));
  }
}

}  // namespace
}  // namespace capo::schedules
