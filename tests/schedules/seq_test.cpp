// Seq1F1B: orders small enough to have been written by hand, the laws over a
// grid, and its bubble and memory, which are a kth of 1F1B's and a little more.

#include "schedules/generators.h"
#include "tests/schedules/order_laws.h"

#include <gtest/gtest.h>

namespace capo::schedules {
namespace {

using namespace order_laws;

using Lines = std::vector<std::string>;

/// The setting whose microbatches are the segments of the orders.
Setting of_segments(const Setting& setting, std::int32_t segments) {
  return {.ranks = setting.ranks, .microbatches = setting.microbatches * segments};
}

/// Calls `look` for every setting of a grid, with every number of segments.
template <typename Look>
void for_every_setting(Look look) {
  for (std::int32_t ranks = 1; ranks <= 6; ++ranks) {
    for (std::int32_t microbatches = 1; microbatches <= 8; ++microbatches) {
      for (std::int32_t segments = 1; segments <= 4; ++segments) {
        SCOPED_TRACE(fmt::format("{} ranks, {} microbatches of {}", ranks, microbatches, segments));
        look(Setting{.ranks = ranks, .microbatches = microbatches}, segments);
      }
    }
  }
}

TEST(Seq, SegmentsAscendForwardsAndDescendBackwards) {
  EXPECT_EQ(text(seq_one_f_one_b({.ranks = 2, .microbatches = 2}, 2).value()),
            (Lines{"F0.0 F1.0 F2.0 BW1.0 F3.0 BW0.0 BW3.0 BW2.0",
                   "F0.0 F1.0 BW1.0 F2.0 BW0.0 F3.0 BW3.0 BW2.0"}));
  EXPECT_EQ(text(seq_one_f_one_b({.ranks = 1, .microbatches = 2}, 3).value()),
            (Lines{"F0.0 F1.0 F2.0 BW2.0 F3.0 BW1.0 F4.0 BW0.0 F5.0 BW5.0 "
                   "BW4.0 BW3.0"}));
}

TEST(Seq, WithFewMicrobatchesAllForwardsComeFirst) {
  EXPECT_EQ(text(seq_one_f_one_b({.ranks = 3, .microbatches = 1}, 2).value()),
            Lines(3, "F0.0 F1.0 BW1.0 BW0.0"));
}

TEST(Seq, OneSegmentIsOneFOneB) {
  for (std::int32_t ranks = 1; ranks <= 6; ++ranks) {
    for (std::int32_t microbatches = 1; microbatches <= 8; ++microbatches) {
      const Setting setting{.ranks = ranks, .microbatches = microbatches};
      EXPECT_EQ(seq_one_f_one_b(setting, 1).value(), one_f_one_b(setting).value());
    }
  }
}

TEST(Seq, EveryOrderIsWholeAndFinishes) {
  for_every_setting([](const Setting& setting, std::int32_t segments) {
    const PublishedOrders orders = seq_one_f_one_b(setting, segments).value();
    ASSERT_EQ(orders.size(), static_cast<std::size_t>(setting.ranks));
    EXPECT_EQ(broken_law(orders, loop(of_segments(setting, segments))), std::nullopt);
  });
}

/// Each microbatch runs its forwards before any of its backwards, and either kind in its order.
TEST(Seq, ASegmentRunsBehindThoseItLooksBackAt) {
  for_every_setting([](const Setting& setting, std::int32_t segments) {
    const PublishedOrders orders = seq_one_f_one_b(setting, segments).value();
    for (const auto& order : orders) {
      std::vector<std::int32_t> done(static_cast<std::size_t>(setting.microbatches), 0);
      for (const Move& move : order) {
        const std::int32_t segment = move.microbatch % segments;
        const std::int32_t place =
            move.kind == Kind::Forward ? segment : 2 * segments - 1 - segment;
        EXPECT_EQ(place, done[static_cast<std::size_t>(move.microbatch / segments)]++);
      }
    }
  });
}

TEST(Seq, ARankHoldsASegmentForEveryRankBelowAndAMicrobatch) {
  for_every_setting([](const Setting& setting, std::int32_t segments) {
    const auto held = most_held(seq_one_f_one_b(setting, segments).value());
    for (std::int32_t rank = 0; rank < setting.ranks; ++rank) {
      EXPECT_EQ(held[static_cast<std::size_t>(rank)],
                std::min(setting.ranks - 1 - rank + segments, setting.microbatches * segments));
    }
  });
}

TEST(Seq, TheBubbleIsASegmentForEveryOtherRank) {
  for_every_setting([](const Setting& setting, std::int32_t segments) {
    if (setting.microbatches * segments < setting.ranks) return;
    const PublishedOrders orders = seq_one_f_one_b(setting, segments).value();
    const Setting of = of_segments(setting, segments);
    EXPECT_EQ(makespan(orders, loop(of)), 3.0 * (of.microbatches + of.ranks - 1));
  });
}

TEST(Seq, ARankHoldsOneChunkAndAMicrobatchOneSegmentAtLeast) {
  EXPECT_EQ(seq_one_f_one_b({.ranks = 2, .chunks = 2}, 2).error(),
            "seq1f1b holds one chunk a rank, not 2");
  EXPECT_EQ(seq_one_f_one_b({.ranks = 0}, 2).error(), "seq1f1b needs one rank at least, not 0");
  EXPECT_EQ(seq_one_f_one_b({}, 0).error(),
            "seq1f1b cuts a microbatch in one segment at least, not 0");
}

TEST(Seq, ThereIsALargestSchedule) {
  constexpr std::int32_t kHuge = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(seq_one_f_one_b({.ranks = 2, .microbatches = 1000}, kHuge).error(),
            "seq1f1b would have more than 100000000 forwards: 2 ranks, 1000 "
            "microbatches of "
            "2147483647 segments");
}

}  // namespace
}  // namespace capo::schedules
