#include "core/minimise/size.h"

#include "tests/support/check_text.h"

#include <gtest/gtest.h>

#include <string>

namespace capo {
namespace {

Size size(const std::string& text) {
  return size_of(testing_support::check_text(text).input.schedule);
}

TEST(Size, CountsWhatIsThere) {
  const Size of = size(
      "capo 1\nmicrobatches 2\nrank 0 delayed 1\nrank 0: F1.0 (F1.1 B1.0) W1.0\n"
      "rank 0 replay: F1.0\n");
  EXPECT_EQ(of.entries, 5);
  EXPECT_EQ(of.orders, 2);
  EXPECT_EQ(of.chunks, 1);
  EXPECT_EQ(of.numbers, 2 + 5 * 2 + 1);
  EXPECT_EQ(of.declared, 2);
  EXPECT_EQ(of.composites, 2);
}

TEST(Size, AnInversionIsAPairTheOtherWayRound) {
  EXPECT_EQ(size("[1, -1, -1.5, 2, -2, -2.5]").inversions, 0);
  EXPECT_EQ(size("[1, -1, 2, -1.5, -2, -2.5]").inversions, 1);
  EXPECT_EQ(size("[1, 2, -2, -1, -2.5, -1.5]").inversions, 5);
  EXPECT_EQ(size("[1, 1, -1, -1]").inversions, 1);
}

TEST(Size, WhereStagesAreWiredBackwardsRunTheOtherWay) {
  EXPECT_EQ(size("capo 1\nplacement chain\nrank 0: F1.0 F2.0 B2.0 B1.0\n").inversions, 0);
  EXPECT_EQ(size("capo 1\nplacement chain\nrank 0: F1.0 F2.0 B1.0 B2.0\n").inversions, 1);
}

TEST(Size, FewerEntriesOutweighEverythingElse) {
  EXPECT_LT(size("[2, 1, -2, -2]"), size("[1, -1, 2, -2, 1]"));
  EXPECT_LT(size("[1, 1, -1, -1]"), size("[1, 2, -1, -2]"));
}

}  // namespace
}  // namespace capo
