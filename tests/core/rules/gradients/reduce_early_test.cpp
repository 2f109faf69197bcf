#include "tests/support/check_text.h"
#include "tests/support/data.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(ReduceEarly, ShowsTheReductionAndTheGradientBehindIt) {
  const Checked checked = check_text("capo 1\nrank 0: F1.0 B1.0 reduce1 W1.0\n");
  ASSERT_EQ(checked.findings(), Findings{"G13@2"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "`reduce1` at index 2 reduces the gradients of chunk 1 before they are complete: "
            "`W1.0` adds to them at index 3");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{25, 7}, "reduces an incomplete gradient"},
                                                {{33, 4}, "this part comes too late"}}));
  EXPECT_EQ(finding.help, (Help{.text = "put the reduction behind the last weight gradient of the "
                                        "chunk, which is its last B where B is whole"}));
  EXPECT_EQ(finding.family, Family::Gradients);
  EXPECT_EQ(finding.severity, Severity::Error);
  EXPECT_EQ(finding.witness.tasks, (std::vector<TaskReference>{{0, 2, "reduce1", "reduce(c1)"},
                                                               {0, 3, "W1.0", "W(c1,m0)"}}));
}

TEST(ReduceEarly, NamesTheStageOfATable) {
  const Checked checked = check_csv("0F0,0F1,0B0,0REDUCE_GRAD,0B1\n1F0,1F1,1B0,1B1,1REDUCE_GRAD\n");
  ASSERT_EQ(checked.findings(), Findings{"G13@3"});
  EXPECT_EQ(checked.result.diagnostics.kept().front().message,
            "`0REDUCE_GRAD` at index 3 of rank 0 reduces the gradients of stage 0 before they are "
            "complete: `0B1` adds to them at index 4");
}

TEST(ReduceEarly, LetsAWholeBackwardAndTheLastWeightGradientComplete) {
  EXPECT_TRUE(check_text("capo 1\nrank 0: F1.0 F1.1 B1.0 B1.1 reduce1\n").accepted());
  EXPECT_TRUE(check_text("capo 1\nrank 0: F1.0 B1.0 W1.0 reduce1\n").accepted());
  EXPECT_TRUE(check_csv("0F0,0F1,0I0,0B1,0W0,0REDUCE_GRAD\n").accepted());
  EXPECT_EQ(check_csv("0F0,0F1,0I0,0W0,0REDUCE_GRAD,0B1\n").findings(), Findings{"G13@4"});
}

TEST(ReduceEarly, LooksAtTheReducedChunkAlone) {
  EXPECT_TRUE(check_text("capo 1\nrank 0: F1.0 F2.0 B2.0 reduce2 B1.0 reduce1\n").accepted());
}

TEST(ReduceEarly, IsAFindingOfEachChunkOfAnOrder) {
  EXPECT_EQ(check_text("capo 1\nrank 0: F1.0 F1.1 F2.0 F2.1 B2.0 reduce2 B1.0 reduce1 B1.1 reduce1 "
                       "B2.1 reduce2\n")
                .findings(),
            (Findings{"G13@5", "G13@7"}));
}

TEST(ReduceEarly, JudgesTheReplayOrderToo) {
  EXPECT_EQ(check_text("capo 1\nrank 0: F1.0 B1.0 W1.0 reduce1\n"
                       "rank 0 replay: F1.0 B1.0 reduce1 W1.0\n")
                .of(Family::Gradients)
                .size(),
            1u);
}

TEST(ReduceEarly, StandsAsideWhereTheOrderIsNotSound) {
  const Checked checked = check_text("capo 1\nrank 0: F1.0 F1.1 B1.0 reduce1 W1.0 B1.1\n");
  EXPECT_EQ(checked.findings(), Findings{"S21@5"});
}

}  // namespace
}  // namespace capo
