#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_in;
using testing_support::Checked;
using Findings = std::vector<std::string>;

constexpr const char* kLate = "[1, 1, 1, 2, 2, 2, -2, -2, -2, -1, -1, -1]";

Checked check_chain(const std::string& text, std::optional<PlanKind> plan = PlanKind::Te) {
  return check_in({.topology = Topology::Chain, .plan = {.kind = plan, .aliases = Aliases{}}},
                  text);
}

TEST(PoolReuse, ShowsWhoWroteWhoTookAndWhoReads) {
  const Checked checked = check_chain(kLate);
  ASSERT_EQ(checked.findings(), (Findings{"B03@6", "B03@7", "B03@8"}));
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(
      finding.message,
      "`-1` at index 9 reads the grad input of chunk 2, microbatch 0, which `-2` at index 8 may "
      "have overwritten");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{31, 2}, "it is read here"},
                                                {{27, 2},
                                                 "its memory goes to the grad input of chunk 2, "
                                                 "microbatch 2"},
                                                {{19, 2}, "it is written here"}}));
  EXPECT_EQ(
      finding.notes,
      (std::vector<Note>{
          {.text = "TransformerEngine frees a grad input when the next backward of any chunk is "
                   "captured; which block is taken then is up to PyTorch's allocator, and "
                   "taken here is the one freed last (docs/model.md)"}}));
  EXPECT_EQ(finding.help,
            (Help{.text = "let `-1` at index 9 come before the next backward behind `-2` at index "
                          "6"}));
  EXPECT_EQ(finding.family, Family::Buffers);
  EXPECT_EQ(finding.severity, Severity::Error);
  EXPECT_EQ(finding.witness.kind, WitnessKind::Replay);
  EXPECT_EQ(finding.witness.tasks,
            (std::vector<TaskReference>{
                {0, 6, "-2", "B(c2,m0)"}, {0, 8, "-2", "B(c2,m2)"}, {0, 9, "-1", "B(c1,m0)"}}));
  EXPECT_FALSE(checked.accepted());
}

TEST(PoolReuse, IsNoneWhereTheGradientIsReadInTime) {
  EXPECT_TRUE(check_chain("[1, 1, 1, 2, 2, 2, -2, -1, -2, -1, -2, -1]").findings().empty());
  EXPECT_TRUE(check_chain("[1, 1, 2, 2, -2, -2, -1, -1]").findings().empty())
      << "freed, and nobody has taken it yet";
}

TEST(PoolReuse, MayBeAForwardsDoing) {
  const Checked checked = check_chain("[1, 1, 2, 2, -2, -2, 1, -1, -1, 2, -2, -1]");
  ASSERT_EQ(checked.findings(), Findings{"B03@4"});
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(0).message,
      "`-1` at index 7 reads the grad input of chunk 2, microbatch 0, which `1` at index 6 may "
      "have overwritten");
}

TEST(PoolReuse, ConcernsChunksThatAreWired) {
  EXPECT_TRUE(check_in({.plan = {.kind = PlanKind::Te}}, kLate).findings().empty());
}

TEST(PoolReuse, DoesNotDependOnOperands) {
  for (const std::optional<Aliases>& aliases :
       {std::optional<Aliases>(), std::optional(Aliases{true, true})}) {
    const Checked checked = check_in(
        {.topology = Topology::Chain, .plan = {.kind = PlanKind::Te, .aliases = aliases}}, kLate);
    EXPECT_EQ(checked.findings(), (Findings{"B03@6", "B03@7", "B03@8"}));
    EXPECT_FALSE(checked.accepted());
  }
}

TEST(PoolReuse, WithoutAPlanIsNotLookedFor) {
  EXPECT_TRUE(check_chain(kLate, std::nullopt).findings().empty());
}

// A list in which TE's reuse may hurt is looked at as a whole.
TEST(PoolReuse, WithoutAPlanIsAWarning) {
  const Checked checked = check_in({.topology = Topology::Chain}, "[1, 2, -2, -1, -2.5]");
  const auto found = checked.of(Family::Buffers);
  ASSERT_FALSE(found.empty());
  for (const Diagnostic& finding : found) {
    EXPECT_EQ(finding.severity, Severity::Warning);
    EXPECT_TRUE(finding.message.starts_with("under TransformerEngine's reuse of buffers, "));
  }
  EXPECT_TRUE(checked.accepted());
}

TEST(PoolReuse, UnderCaposPlanIsNone) {
  const Checked checked = check_chain(kLate, PlanKind::Safe);
  EXPECT_TRUE(checked.findings().empty());
  EXPECT_TRUE(checked.accepted());
}

TEST(PoolReuse, IsSeenAtTheTurnOfAV) {
  const Checked checked =
      check_in({.plan = {.kind = PlanKind::Te}},
               "capo 1\nchunks 2\nplacement v\n"
               "rank 0: F1.0 F1.1 F1.2 F2.0 B2.0 F2.1 B2.1 F2.2 B2.2 B1.0 B1.1 B1.2\n"
               "rank 1: F1.0 F1.1 F1.2 F2.0 F2.1 F2.2 B2.0 B2.1 B2.2 B1.0 B1.1 B1.2\n");
  Findings readers;
  for (const Diagnostic& finding : checked.result.diagnostics.kept()) {
    if (finding.rule == "B03") readers.push_back(finding.witness.tasks.back().text);
  }
  EXPECT_EQ(readers, (Findings{"B1.0", "B1.1", "B1.2"})) << "of rank 1, which holds the turn";
}

TEST(PoolReuse, IsOfTheFirstLayerOfAChunk) {
  const Checked checked = check_in({.topology = Topology::Chain, .plan = {.kind = PlanKind::Te}},
                                   "capo 1\nchunks 2\nlayers 2\n"
                                   "rank 0: F1 F1 F1 F2 F2 F2 B2 B2 B2 B1 B1 B1\n");
  ASSERT_FALSE(checked.findings().empty());
  for (const Diagnostic& finding : checked.result.diagnostics.kept()) {
    EXPECT_EQ(finding.rule, "B03");
    EXPECT_NE(finding.message.find("the grad input of chunk 2, layer 0, microbatch"),
              std::string::npos)
        << finding.message;
  }
}

}  // namespace
}  // namespace capo
