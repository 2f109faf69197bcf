#include "testing/oracle/stash.h"

#include <gtest/gtest.h>

#include <vector>

namespace capo::oracle {
namespace {

using StashPlaces = std::vector<int>;

TEST(OracleStash, ReloadsForWhoComesNextInTheOrderOfCapture) {
  EXPECT_EQ(misled_reloads({4, 2, 7}, {4, 2, 7}), StashPlaces());
  EXPECT_EQ(misled_reloads({}, {}), StashPlaces());
}

TEST(OracleStash, MisleadsWhereAnotherFollows) {
  EXPECT_EQ(misled_reloads({0, 1, 2, 3}, {0, 2, 1, 3}), (StashPlaces{0, 1, 2}));
  EXPECT_EQ(misled_reloads({0, 1, 2}, {1, 0, 2}), (StashPlaces{0, 1}));
}

TEST(OracleStash, FindsTheHandEmptyBehindTheLastOfTheCapture) {
  EXPECT_EQ(misled_reloads({0, 1, 2, 3}, {2, 3, 0, 1}), (StashPlaces{1, 3}))
      << "3 reloads nothing, and nobody takes what 1 reloads";
}

}  // namespace
}  // namespace capo::oracle
