#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

Checked check_rank(const std::string& order) {
  return check_text("capo 1\nrank 0: " + order + "\n");
}

Diagnostic only_finding(const std::string& order) {
  const Checked checked = check_rank(order);
  EXPECT_EQ(checked.result.diagnostics.kept().size(), 1U);
  return checked.result.diagnostics.kept().at(0);
}

TEST(ParametersAway, ShowsTheComputationAndTheReshardBeforeIt) {
  const Diagnostic finding = only_finding("unshard1 F1.0 reshard1 B1.0");
  EXPECT_EQ(finding.rule, "D05");
  EXPECT_EQ(finding.family, Family::Dependencies);
  EXPECT_EQ(
      finding.message,
      "`B1.0` at index 3 computes with the parameters of chunk 1, which `reshard1` at index 2 "
      "has given up");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{38, 4}, ""}, {{29, 8}, "given up here"}}));
  EXPECT_EQ(finding.help,
            (Help{.text = "move `reshard1` behind `B1.0`, or gather the parameters again between "
                          "them"}));
}

TEST(ParametersAway, ShowsTheUnshardThatComesTooLate) {
  const Diagnostic finding = only_finding("F1.0 unshard1 B1.0");
  EXPECT_EQ(finding.message,
            "`F1.0` at index 0 computes before `unshard1` at index 1 gathers the parameters of "
            "chunk 1");
  EXPECT_EQ(finding.help, (Help{.text = "move `unshard1` before `F1.0`"}));
}

TEST(ParametersAway, ShowsWhatIsDoneTwice) {
  EXPECT_EQ(only_finding("unshard1 unshard1 F1.0 B1.0").message,
            "`unshard1` at index 1 gathers the parameters of chunk 1, which `unshard1` at index 0 "
            "has gathered");
  EXPECT_EQ(only_finding("F1.0 B1.0 reshard1 reshard1").message,
            "`reshard1` at index 3 gives up the parameters of chunk 1, which `reshard1` at index 2 "
            "has given up");
}

TEST(ParametersAway, IsSaidOnceFromOneMoveToTheNext) {
  EXPECT_EQ(
      check_rank("unshard1 F1.0 reshard1 B1.0 W1.0 unshard1 reshard1 F1.1 B1.1 W1.1").findings(),
      (Findings{"D05@3", "D05@7"}));
}

TEST(ParametersAway, AcceptsParametersThatAreThere) {
  EXPECT_TRUE(check_rank("F1.0 B1.0").accepted());
  EXPECT_TRUE(check_rank("unshard1 F1.0 B1.0").accepted());
  EXPECT_TRUE(check_rank("unshard1 F1.0 reshard1 unshard1 B1.0 reshard1").accepted());
  EXPECT_TRUE(check_rank("F1.0 reshard1 unshard1 B1.0").accepted()) << "they were there before";
}

TEST(ParametersAway, LooksAtEachChunkByItself) {
  EXPECT_TRUE(check_rank("unshard2 F1.0 F2.0 B2.0 reshard2 B1.0").accepted());
  EXPECT_EQ(
      check_csv("1UNSHARD,0F0,1F0,1RESHARD,1B0,0B0\n").result.diagnostics.kept().at(0).message,
      "`1B0` at index 4 computes with the parameters of stage 1, which `1RESHARD` at index 3 "
      "has given up");
}

TEST(ParametersAway, TakesTheMembersOfACompositeInTheirOrder) {
  EXPECT_TRUE(check_rank("(unshard1 F1.0) B1.0").accepted());
  EXPECT_EQ(check_rank("(F1.0 unshard1) B1.0").findings(), Findings{"D05@0"});
}

TEST(ParametersAway, JudgesTheReplayOrderToo) {
  EXPECT_EQ(check_text("capo 1\nrank 0: unshard1 F1.0 B1.0\nrank 0 replay: F1.0 unshard1 B1.0\n")
                .of(Family::Dependencies)
                .size(),
            1U);
}

TEST(ParametersAway, LeavesAChunkThatTheRankDoesNotHaveToUnknownChunk) {
  EXPECT_EQ(check_text("capo 1\nchunks 1\nrank 0: F1.0 B1.0 reshard2 reshard2\n").findings().at(0),
            "S12@2");
}

}  // namespace
}  // namespace capo
