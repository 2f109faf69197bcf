#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_in;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(ReduceMissing, ShowsTheLastGradientAndAChunkThatIsReduced) {
  const std::string text = "capo 1\nrank 0: F1.0 B1.0 reduce1\nrank 1: F1.0 B1.0\n";
  const Checked checked = check_text(text);
  ASSERT_EQ(checked.findings(), Findings{"G14@1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "the gradients of chunk 1 on rank 1 are never reduced, though `reduce1` reduces those "
            "of chunk 1 on rank 0");
  EXPECT_EQ(finding.labels,
            (std::vector<Label>{{{46, 4}, "the last gradient, which nobody reduces"},
                                {{25, 7}, "reduced here"}}));
  EXPECT_EQ(finding.help,
            (Help{.text = "add `reduce1` after it", .edits = {{{50, 0}, " reduce1"}}}));
  EXPECT_EQ(finding.family, Family::Gradients);
  EXPECT_EQ(finding.severity, Severity::Error);
  EXPECT_EQ(finding.witness.tasks, (std::vector<TaskReference>{{1, 1, "B1.0", "B(c1,m0)"}}));
  EXPECT_TRUE(check_text(text.substr(0, 50) + " reduce1\n").accepted()) << "its edit cures it";
}

TEST(ReduceMissing, NamesTheStagesOfATable) {
  const Checked checked = check_csv("0F0,1F0,1B0,1REDUCE_GRAD,0B0\n");
  ASSERT_EQ(checked.findings(), Findings{"G14@4"});
  EXPECT_EQ(checked.result.diagnostics.kept().front().message,
            "the gradients of stage 0 are never reduced, though `1REDUCE_GRAD` reduces those of "
            "stage 1");
}

TEST(ReduceMissing, SaysNothingWhereNothingIsReduced) {
  EXPECT_TRUE(check_text("capo 1\nrank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\n").accepted());
  EXPECT_TRUE(check_text("[1, 2, -2, -1]").accepted());
}

TEST(ReduceMissing, AcceptsOneForEveryChunk) {
  EXPECT_TRUE(
      check_text("capo 1\nrank 0: F1.0 F2.0 B2.0 reduce2 B1.0 reduce1\nrank 1: F1.0 B1.0 reduce1\n")
          .accepted());
}

TEST(ReduceMissing, LetsAChunkOfFrozenLayersGo) {
  const std::string text = "capo 1\nrank 0: F1.0 F2.0 B2.0 reduce2 B1.0\n";
  EXPECT_EQ(check_text(text).findings(), Findings{"G14@4"});
  const auto findings = [&](ModuleFlags frozen) {
    const ModuleTable modules{.list = {{.name = "trained"}, {.name = "frozen", .flags = frozen}},
                              .layers = {{{1}, {0}}}};
    return check_in({.modules = modules}, text).findings();
  };
  EXPECT_EQ(findings({.frozen_weight = true}), Findings{});
  EXPECT_EQ(findings({.frozen_weight = true, .bias = true}), Findings{"G14@4"});
  EXPECT_EQ(findings({}), Findings{"G14@4"});
}

TEST(ReduceMissing, JudgesTheReplayOrderToo) {
  EXPECT_EQ(check_text("capo 1\nrank 0: F1.0 B1.0 reduce1\nrank 0 replay: F1.0 B1.0\n")
                .of(Family::Gradients)
                .size(),
            1u);
}

}  // namespace
}  // namespace capo
