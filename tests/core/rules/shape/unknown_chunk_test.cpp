#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

const TeDeclarations kOneChunk{.layers = {.form = Layers::Form::List, .values = {1}}};

TEST(UnknownChunk, NamesTheChunkAndTheDeclaredOne) {
  const Checked checked = check_te("[1, 2, -2, -1]", kOneChunk);
  ASSERT_EQ(checked.findings(), (Findings{"S12@1", "S12@2"}));
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "`2` at index 1 names chunk 2, but only chunk 1 is declared");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{4, 1}, ""}}));
  EXPECT_EQ(finding.help,
            (Help{.text = "correct the entry, or the number of chunks that is declared with "
                          "the layers per chunk"}));
}

TEST(UnknownChunk, NamesTheRangeOfSeveralDeclaredChunks) {
  const Checked checked = check_text("capo 1\nchunks 2\nrank 0: F1 F2 F3 B2 B1\n");
  ASSERT_EQ(checked.findings(), Findings{"S12@2"});
  EXPECT_EQ(checked.result.diagnostics.kept().front().message,
            "`F3` at index 2 names chunk 3, but only chunks 1 to 2 are declared");
}

TEST(UnknownChunk, AcceptsTheLastDeclaredChunk) {
  EXPECT_TRUE(check_text("capo 1\nchunks 2\nrank 0: F1 F2 B2 B1\n").accepted());
}

TEST(UnknownChunk, HoldsEveryRankToItsOwnNumber) {
  const Checked checked = check_text(
      "capo 1\nrank 0 chunks 2\nrank 1 chunks 1\nrank 0: F1 F2 B2 B1\nrank 1: F1 F2 B2 B1\n");
  ASSERT_EQ(checked.findings(), (Findings{"S12@1", "S12@2"}));
  EXPECT_EQ(checked.result.diagnostics.kept().front().witness.tasks.at(0).rank, 1);
}

TEST(UnknownChunk, JudgesTheReplayOrderToo) {
  EXPECT_EQ(check_text("capo 1\nchunks 1\nrank 0: F1 B1\nrank 0 replay: F1 B1 F2\n").findings(),
            Findings{"S12@2"});
}

TEST(UnknownChunk, WithoutADeclarationAnOrderIsAtLeastAsLongAsItsLargestChunk) {
  EXPECT_EQ(check_te("[1, 4, -1]").findings(), Findings{"S12@1"});
  EXPECT_EQ(check_te("[1, 3, -1]").findings(), (Findings{"S13@1", "S15@1"}))
      << "three entries, chunk 3";
  EXPECT_EQ(check_text("capo 1\nrank 0: F1 F9 B1\n").findings(), Findings{"S12@1"});
  EXPECT_EQ(check_te("[99999999999999999999, 1, -1]").findings(), Findings{"S12@0"});
}

TEST(UnknownChunk, IsTheOnlyRuleToSpeakOfSuchAnEntry) {
  // A third forward, a second backward and a weight gradient: of a chunk that does not exist.
  EXPECT_EQ(check_te("[1, -1, -2.5, -2, 2, 2]", kOneChunk).findings(),
            (Findings{"S12@2", "S12@3", "S12@4", "S12@5"}));
  EXPECT_EQ(check_text("capo 1\nchunks 1\nrank 0: F1.0 B1.0 B2.0 F2.0 F2.0\n").findings(),
            (Findings{"S12@2", "S12@3", "S12@4"}));
}

TEST(UnknownChunk, ConcernsActionsOfAWholeStageAndNoIdleSlots) {
  EXPECT_EQ(check_text("capo 1\nchunks 1\nrank 0: F1 . B1 reduce2\n").findings(),
            Findings{"S12@3"});
  EXPECT_EQ(check_text("capo 1\nchunks 1\nrank 0: F1 B1 combine-B2\n").findings(),
            Findings{"S12@2"});
}

TEST(UnknownChunk, OfAReplayIsOneThatNobodyCaptured) {
  const Checked checked =
      check_text("capo 1\nrank 0: F1.0 B1.0\nrank 0 replay: F1.0 F2.0 B2.0 B1.0\n");
  ASSERT_EQ(checked.findings(), (Findings{"S12@1", "S12@2"}));
  EXPECT_EQ(checked.result.diagnostics.kept().front().message,
            "`F2.0` at index 1 of rank 0's replay order names a chunk that the capture order does "
            "not have");
}

}  // namespace
}  // namespace capo
