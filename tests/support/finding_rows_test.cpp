// Rows of findings fail if what they say is not so, and name themselves.

#include "tests/support/finding_rows.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

namespace capo::testing_support {
namespace {

const std::string kTwice = "0F0,0B0,0B0\n";

TEST(FindingRows, HoldOfWhatTheySay) {
  expect_findings({
      {"accepted", check_te("[1, -1]")},
      {"refused", check_te("[1, nan, -1]"), "S01@1", because("it is no number"), fails(),
       labels("4+3")},
      {"", check_csv(kTwice), "S20@1", shows("error entries: 0:1 0B0 B(c1,m0), 0:2 0B0 B(c1,m0)"),
       says("`0B0` at index 2 runs a second time")},
  });
}

TEST(FindingRows, FailIfSomethingElseIsFound) {
  EXPECT_NONFATAL_FAILURE(expect_findings({{"name", check_te("[1, -1]"), "S01@1"}}), "name");
  EXPECT_NONFATAL_FAILURE(expect_findings({{"name", check_te("[1, nan, -1]")}}), "S01@1");
  const auto twice = [](const Detail& detail) {
    expect_findings({{"", check_csv(kTwice), "S20@1", detail}});
  };
  EXPECT_NONFATAL_FAILURE(twice(says("it runs")), "a second time");
  EXPECT_NONFATAL_FAILURE(twice(shows("error path: 0:1 0B0 B(c1,m0)")), "error entries");
  EXPECT_NONFATAL_FAILURE(twice(labels("1+2")), "1+2");
  EXPECT_NONFATAL_FAILURE(twice(warns()), "warning");
  EXPECT_NONFATAL_FAILURE(twice(stuck()), "stuck");
}

}  // namespace
}  // namespace capo::testing_support
