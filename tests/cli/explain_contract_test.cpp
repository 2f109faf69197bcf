// `capo explain contract`, and the page docs/gradients.md that shows what it prints.

#include "tests/support/file_text.h"
#include "tests/support/run_capo.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace capo {
namespace {

using testing_support::lines_of;
using testing_support::Outcome;
using testing_support::read_file;
using testing_support::run_capo;

// The rows of the table that follows the line with `title`.
std::vector<std::string> table_below(const std::string& page, const std::string& title) {
  std::vector<std::string> rows;
  const std::vector<std::string> lines = lines_of(page);
  std::size_t i = 0;
  while (i < lines.size() && !lines[i].starts_with(title)) ++i;
  for (i += 3; i < lines.size() && !lines[i].empty(); ++i) rows.push_back(lines[i]);
  return rows;
}

TEST(ExplainContract, PrintsARowACellAndMarksTheDefectiveOnes) {
  const Outcome outcome = run_capo({"explain", "contract"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  const std::vector<std::string> sound = table_below(outcome.out, "The sound contract");
  const std::vector<std::string> te = table_below(outcome.out, "TransformerEngine v2.20.2");
  ASSERT_EQ(sound.size(), 36U);
  ASSERT_EQ(te.size(), 36U);
  for (const std::string& row : sound) EXPECT_EQ(row.front(), ' ') << row;
  for (const std::string& row : te) {
    const bool defective = row.starts_with("! ");
    const bool expected =
        row.substr(2).starts_with("delay ") || row.substr(2).starts_with("delay+fuse+attr ");
    EXPECT_EQ(defective, expected) << row;
    EXPECT_EQ(defective, row.back() >= 'a' && row.back() <= 'c') << row;
  }
  EXPECT_EQ(
      te[9],
      "! delay            grouped-linear     uninitialised   assigns .grad      W   -     a b");
  EXPECT_EQ(sound[9],
            "  delay            grouped-linear     nothing        adds to .grad      W   -");
}

TEST(ExplainContract, EveryMarkHasItsNote) {
  const std::string page = run_capo({"explain", "contract"}).out;
  for (const char* mark : {"\n  a  W assigns", "\n  b  B hands", "\n  c  grad_added_to_main_grad"})
    EXPECT_NE(page.find(mark), std::string::npos) << mark;
}

TEST(ExplainContract, KeepsToTheWidthOfAPage) {
  for (const std::string& line : lines_of(run_capo({"explain", "contract"}).out)) {
    EXPECT_LE(line.size(), 100U) << line;
    EXPECT_FALSE(line.ends_with(' ')) << line;
  }
}

TEST(ExplainContract, ThePageInTheDocumentationShowsWhatItPrints) {
  const std::string page = read_file(CAPO_SOURCE_DIR "/docs/gradients.md");
  const std::string fence = "```text\n";
  const std::size_t begin = page.find(fence);
  ASSERT_NE(begin, std::string::npos);
  const std::size_t end = page.find("```\n", begin + fence.size());
  ASSERT_NE(end, std::string::npos);
  EXPECT_EQ(page.substr(begin + fence.size(), end - begin - fence.size()),
            run_capo({"explain", "contract"}).out)
      << "put what `capo explain contract` prints between the fences";
}

TEST(ExplainContract, AnUnknownTopicIsGuessed) {
  const Outcome close = run_capo({"explain", "contrat"});
  EXPECT_EQ(close.exit_code, 2);
  EXPECT_EQ(close.out, "");
  EXPECT_NE(close.err.find("did you mean `contract`?"), std::string::npos) << close.err;
  const Outcome far = run_capo({"explain", "zzzzzzzzzzz"});
  EXPECT_EQ(far.exit_code, 2);
  EXPECT_NE(far.err.find("`contract`"), std::string::npos) << far.err;
}

}  // namespace
}  // namespace capo
