// Laws as GoogleTest's assertions, and orders as GoogleTest prints them.

#include "testing/gtest/holds.h"

#include <gtest/gtest.h>

namespace capo::testing {
namespace {

TEST(Holds, WhereALawSaysNothing) {
  EXPECT_TRUE(holds(std::nullopt));
}

TEST(Holds, NotWhereItSaysWhatDoesNotAndShowsIt) {
  const auto result = holds("an entry is missing");
  EXPECT_FALSE(result);
  EXPECT_STREQ(result.message(), "an entry is missing");
}

TEST(Holds, AnOrderIsPrintedAsTextToPaste) {
  Schedule schedule{.naming = Naming::Named};
  schedule.ranks.emplace_back().chunks = 1;
  schedule.ranks.front().order = {{.chunk = 1, .microbatch = 0, .kind = Kind::Forward}};
  EXPECT_NE(::testing::PrintToString(schedule).find("rank 0: F1.0"), std::string::npos);
}

}  // namespace
}  // namespace capo::testing
