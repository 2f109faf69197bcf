#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(ChunkZero, SaysFromWhereChunksAreCounted) {
  const Checked checked = check_te("[1, 0]");
  ASSERT_EQ(checked.findings(), Findings{"S04@1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message, "`0` at index 1 is no chunk; chunks are counted from 1");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{4, 1}, ""}}));
  EXPECT_EQ(finding.help.text, "write `i` for a forward and `-i` for a backward of chunk i");
  EXPECT_TRUE(finding.help.edits.empty()) << "it may be either, of any chunk";
}

TEST(ChunkZero, TellsTheWeightGradientOfChunkZeroFromWhatNamesNothing) {
  const auto message = [](const std::string& entry) {
    const Checked checked = check_te("[1, -1, " + entry + "]");
    EXPECT_EQ(checked.findings(), Findings{"S04@2"}) << entry;
    return checked.result.diagnostics.kept().at(0).message;
  };
  for (const std::string half : {"-0.5", "-.5"}) {
    EXPECT_EQ(
        message(half),
        "`" + half + "` at index 2 is a weight gradient of chunk 0; chunks are counted from 1");
  }
  for (const std::string fraction : {"-0.25", "-0.999"}) {
    EXPECT_EQ(message(fraction), "`" + fraction + "` at index 2 names no chunk");
  }
}

TEST(ChunkZero, KnowsEveryZero) {
  for (const std::string zero :
       {"0", "-0", "+0", "00", "0.0", "-0.0", "0e5", "1e-999", "-1e-999"}) {
    EXPECT_EQ(check_te("[1, " + zero + ", -1]").findings(), Findings{"S04@1"}) << zero;
  }
  EXPECT_EQ(check_text(R"({"order": [1, -0, -1]})").findings(), Findings{"S04@1"});
}

TEST(ChunkZero, AcceptsChunkOne) {
  EXPECT_TRUE(check_te("[1, -1, -1.5]").accepted());
}

TEST(ChunkZero, LeavesOtherOddEntriesToTheirRules) {
  EXPECT_EQ(check_te("[1, 0.5, -1]").findings(), Findings{"S05@1"}) << "a positive fraction";
  EXPECT_EQ(check_te("[1, -1.0]").findings(), Findings{"S03@1"}) << "chunk 1, as a float";
  EXPECT_EQ(check_te("[1, -1.25, -1]").findings(), Findings{"S02@1"}) << "of chunk 1";
}

TEST(ChunkZero, SparesTheListTheComplaintThatItHasNoForward) {
  EXPECT_EQ(check_te("[0]").findings(), Findings{"S04@0"});
}

}  // namespace
}  // namespace capo
