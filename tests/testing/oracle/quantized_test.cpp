#include "testing/oracle/quantized.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace capo::oracle {
namespace {

using Stale = std::vector<int>;

TEST(OracleQuantized, ForwardsInFrontOfTheFirstMicrobatchAreStale) {
  EXPECT_EQ(stale_forwards({{1, 0}, {1, 1}, {1, 2}}), Stale());
  EXPECT_EQ(stale_forwards({{1, 1}, {1, 2}, {1, 0}, {1, 3}}), (Stale{0, 1}));
  EXPECT_EQ(stale_forwards({}), Stale());
}

TEST(OracleQuantized, EachChunkHasAWeightOfItsOwn) {
  EXPECT_EQ(stale_forwards({{1, 0}, {2, 1}, {2, 0}, {1, 1}, {2, 2}}), (Stale{1}));
}

TEST(OracleQuantized, AWeightThatNobodyMakesAnewIsOfNoStep) {
  EXPECT_EQ(stale_forwards({{1, 1}, {1, 2}}), Stale());
}

TEST(OracleQuantized, MembersPartWhereTheirPassesDo) {
  EXPECT_EQ(parting_of_magnitudes({}), std::nullopt);
  EXPECT_EQ(parting_of_magnitudes({"FFBB", "FFBB", "FFBB"}), std::nullopt);
  EXPECT_EQ(parting_of_magnitudes({"FFBB", "FBFB"}), 1);
  EXPECT_EQ(parting_of_magnitudes({"FFBB", "FFBB", "FFB"}), 3) << "one has no fourth";
  EXPECT_EQ(parting_of_magnitudes({"", "F"}), 0);
}

}  // namespace
}  // namespace capo::oracle
