#include "core/text/order_printer.h"
#include "schedules/catalogue.h"
#include "tests/support/check_text.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

// The quoted beginnings of the messages: what is missing.
std::vector<std::string> missing(const Checked& checked) {
  std::vector<std::string> actions;
  for (const Diagnostic& finding : checked.result.diagnostics.kept()) {
    EXPECT_EQ(finding.rule, "S21");
    actions.push_back(finding.message.substr(1, finding.message.find('`', 1) - 1));
  }
  return actions;
}

using Actions = std::vector<std::string>;

TEST(MissingAction, PointsAtTheLastActionOfTheMicrobatch) {
  const Checked checked = check_csv("0F0,0F1,0B0\n");
  ASSERT_EQ(checked.findings(), Findings{"S21@1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "`0B1` is missing: stage 0 does not run microbatch 1 backward");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{4, 3}, ""}}));
  EXPECT_EQ(finding.help.edits, (std::vector<Edit>{{{7, 0}, ",0B1"}}));
}

TEST(MissingAction, ItsEditCuresTheOrderInEveryTextForm) {
  for (const std::string text :
       {"0F0,0F1,0B0\n", "\"0F0\",\"0F1\",\"0B0\"\n", "0F0,0I0\n",
        "capo 1\nrank 0: F1.0 F1.1 B1.0\n", "capo 1\nrank 0: F1.0 B1.0 F1.1 I1.1\n",
        R"({"csv": ["0F0,0F1,0B0"]})"}) {
    const Checked checked = check_text(text);
    const Edit& edit = checked.result.diagnostics.kept().at(0).help.edits.at(0);
    std::string cured = text;
    EXPECT_TRUE(
        check_text(cured.replace(edit.span.offset, edit.span.length, edit.replacement)).accepted())
        << cured;
  }
}

// The gradient comes from the stage behind: on this rank, its place is known.
TEST(MissingAction, ItsEditIsBehindAllThatItReads) {
  const Checked checked = check_csv("0F0,1F0,0F1,1F1,1B0,0B0,1B1\n", {.stage_to_rank = {{0, 0}}});
  const Diagnostic& finding = checked.result.diagnostics.kept().at(0);
  EXPECT_EQ(finding.help.text, "add it after `1B1`");
  EXPECT_EQ(finding.help.edits, (std::vector<Edit>{{{27, 0}, ",0B1"}}));
}

// Behind its forward, ahead of `0F2` of which rank 1 makes the gradient, the ranks would wait for
// each other.
TEST(MissingAction, OffersNoEditWhereAnotherRankHandsTheGradientOn) {
  const Checked checked = check_csv("0F0,0F1,0F2,0B0,0B2\n1F0,1F1,1F2,1B0,1B1,1B2\n");
  ASSERT_EQ(missing(checked), Actions{"0B1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().at(0);
  EXPECT_EQ(finding.help,
            (Help{.text = "add it after `0F1`, and late enough for the gradient that stage 1 hands "
                          "on"}));
}

TEST(MissingAction, OffersNoEditWhereNobodyMakesTheGradient) {
  const Checked checked = check_csv("0F0,1F0,0F1,1F1,1B0,0B0\n", {.stage_to_rank = {{0, 0}}});
  ASSERT_EQ(missing(checked), (Actions{"0B1", "1B1"}));
  EXPECT_TRUE(checked.result.diagnostics.kept().at(0).help.edits.empty());
  EXPECT_FALSE(checked.result.diagnostics.kept().at(1).help.edits.empty());
}

// Whatever backward or weight gradient is left out of a sound schedule.
TEST(MissingAction, ItsEditsAlwaysCure) {
  std::size_t edits = 0;
  for (const char* name : {"gpipe", "1f1b", "1f1b-interleaved", "zb-h1", "zbv-1p", "v-half",
                           "hanayo", "chimera", "looped-bfs"}) {
    const Schedule sound =
        *published::schedule_named({.name = name, .ranks = 4, .microbatches = 8});
    for (std::size_t r = 0; r < sound.ranks.size(); ++r) {
      for (std::size_t i = 0; i < sound.ranks[r].order.size(); ++i) {
        Schedule broken = sound;
        auto& order = broken.ranks[r].order;
        order.erase(order.begin() + static_cast<std::ptrdiff_t>(i));
        std::string text = print_order_file(broken);
        const Checked checked = check_text(text);
        ASSERT_EQ(missing(checked).size(), 1U) << text;
        for (const Edit& edit : checked.result.diagnostics.kept().front().help.edits) {
          ++edits;
          text.replace(edit.span.offset, edit.span.length, edit.replacement);
          EXPECT_TRUE(check_text(text).accepted()) << name << "\n" << text;
        }
      }
    }
  }
  EXPECT_GT(edits, 100U);
}

TEST(MissingAction, OffersNoEditInsideAComposite) {
  const Checked checked = check_csv("0F0,(0F1;0B0)OVERLAP_F_B\n");
  EXPECT_EQ(missing(checked), Actions{"0B1"});
  EXPECT_TRUE(checked.result.diagnostics.kept().at(0).help.edits.empty());
}

TEST(MissingAction, FindsAForwardToo) {
  const Checked checked = check_csv("0F0,0B0,0B1\n");
  ASSERT_EQ(checked.findings(), Findings{"S21@2"});
  EXPECT_EQ(checked.result.diagnostics.kept().front().message,
            "`0F1` is missing: stage 0 does not run microbatch 1 forward");
  EXPECT_TRUE(checked.result.diagnostics.kept().front().help.edits.empty())
      << "it belongs further ahead";
}

TEST(MissingAction, UsesTheWordThatTheTableHasForAnInputHalf) {
  EXPECT_EQ(missing(check_csv("0F0,0I0,0W0,0F1,0W1\n")), Actions{"0I1"});
  EXPECT_EQ(missing(check_text("capo 1\nrank 0: F1.0 B1.0 W1.0 F1.1 W1.1\n")), Actions{"B1.1"});
}

TEST(MissingAction, AsksForTheWeightGradientOfASplitBackward) {
  EXPECT_EQ(missing(check_csv("0F0,0I0\n")), Actions{"0W0"});
  EXPECT_EQ(missing(check_text("capo 1\ndelayed 1\nrank 0: F1.0 B1.0\n")), Actions{"W1.0"});
  EXPECT_TRUE(check_csv("0F0,0I0,0W0\n").accepted());
}

TEST(MissingAction, InAMixedChunkEachMicrobatchMayDoEither) {
  EXPECT_TRUE(check_csv("0F0,0B0,0F1,0I1,0W1\n").accepted());
  EXPECT_EQ(missing(check_csv("0F0,0B0,0F1,0I1\n")), Actions{"0W1"});
  EXPECT_EQ(missing(check_csv("0F0,0B0,0F1,0W1\n")), Actions{"0I1"});
  EXPECT_EQ(missing(check_csv("0F0,0B0,0F1,0I1,0W1,0F2\n")), Actions{"0B2"});
}

TEST(MissingAction, FindsMicrobatchesThatDoNotOccurAtAll) {
  EXPECT_EQ(missing(check_csv("0F1,0B1\n")), (Actions{"0F0", "0B0"}));
  EXPECT_EQ(missing(check_csv("0F0,0B0,0F2,0B2\n")), (Actions{"0F1", "0B1"}));
  EXPECT_EQ(missing(check_csv("0F0,0B0\n", {.microbatches = 2})), (Actions{"0F1", "0B1"}));
  EXPECT_EQ(missing(check_csv("0F0,0I0,0W0\n", {.microbatches = 2})),
            (Actions{"0F1", "0I1", "0W1"}));
}

TEST(MissingAction, HoldsEveryRankToTheLargestMicrobatchOfAny) {
  const Checked checked = check_csv("0F0,0F1,0B0,0B1\n1F0,1B0\n");
  EXPECT_EQ(missing(checked), (Actions{"1F1", "1B1"}));
  EXPECT_EQ(checked.result.diagnostics.kept().at(0).message,
            "`1F1` is missing on rank 1: stage 1 does not run microbatch 1 forward");
}

TEST(MissingAction, JudgesTheReplayOrderByItself) {
  const Checked checked = check_text("capo 1\nrank 0: F1.0 B1.0\nrank 0 replay: F1.0\n");
  EXPECT_EQ(missing(checked), Actions{"B1.0"});
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(0).message,
      "`B1.0` is missing in rank 0's replay order: chunk 1 does not run microbatch 0 backward");
}

TEST(MissingAction, CountsWhatItDoesNotDescribe) {
  const Checked checked = check_csv("0F0,0B0\n", {.microbatches = 1'000'001});
  EXPECT_EQ(checked.result.diagnostics.errors(), 2'000'000u);
  EXPECT_EQ(checked.result.diagnostics.kept().size(), Diagnostics::kDefaultLimit);
}

TEST(MissingAction, AcceptsACompleteOrder) {
  EXPECT_TRUE(check_csv("0F0,0F1,0B0,0B1\n").accepted());
}

TEST(MissingAction, LeavesAnAbsentStageToMissingChunk) {
  EXPECT_EQ(check_csv("0F0,0B0\n", {.stage_to_rank = {{0, 0}}}).findings(), Findings{"S13@-"});
}

TEST(MissingAction, LeavesMicrobatchesOutOfRangeAlone) {
  EXPECT_EQ(check_csv("0F0,0B0,0F3\n", {.microbatches = 1}).findings(), Findings{"S19@2"});
}

TEST(MissingAction, LeavesCountedMicrobatchesToTheCounts) {
  EXPECT_EQ(check_te("[1, 1, -1]", {.microbatches = 2}).findings(), Findings{"S15@1"});
}

}  // namespace
}  // namespace capo
