// The matrix and the table of rules, as text; and the page that is made of lines.

#include "testing/truth/tally.h"

#include "testing/truth/report_page.h"

#include <gtest/gtest.h>

#include <sstream>

namespace capo::testing {
namespace {

TruthLine line(std::uint64_t number, Came came, std::vector<std::string> rules, bool equal) {
  const bool ran = came != Came::NotRun;
  return {.number = number,
          .order = "[1, -1]",
          .module = number % 2 == 0 ? "linear bf16" : "linear bf16, grouped-mlp bf16",
          .plan = "te",
          .graphs = number % 2 == 0 ? "per-step" : "per-action",
          .fault = rules.empty() ? "" : "a-fault",
          .across = number == 1 || number == 2 ? "per-pair, buffered" : "",
          .verdict = rules.empty() ? "accepted" : "rejected",
          .rules = std::move(rules),
          .came = came,
          .engine = "host",
          .ran = ran,
          .bit_equal = equal,
          .within_bounds = true,
          .float64 = 0.001 * static_cast<double>(number),
          .gradients = 2,
          .replays = 3,
          .victims = {.grad_output = {{0, 1, 0}}}};
}

std::vector<TruthLine> lines() {
  return {line(0, Came::Right, {}, true), line(1, Came::Right, {}, true),
          line(2, Came::Seen, {"B01", "B02"}, false), line(3, Came::Explained, {"B07"}, true),
          line(4, Came::NotRun, {"S15"}, false)};
}

Tally tally() {
  Tally counted;
  for (const TruthLine& one : lines()) counted.add(one);
  return counted;
}

TEST(TallyOfLines, IsTheMatrixOfVerdictAgainstGradients) {
  EXPECT_EQ(matrix_text(tally()),
            "            gradients right   some wrong\n"
            "  accepted                2            0\n"
            "  rejected                1            1\n"
            "rejected and seen 1, explained 1, nothing to run 1; disagreements 0\n"
            "24 gradients compared to the bit, 4 victims seen; largest error 0.003\n"
            "2 of several ranks whose communication was not declared, 1 rejected\n");
}

TEST(TallyOfLines, CountsALineOnceForEachRule) {
  EXPECT_EQ(rules_text(tally()),
            "  rule      seen   explained   nothing to run\n"
            "  B01          1           0                0\n"
            "  B02          1           0                0\n"
            "  B07          0           1                0\n"
            "  S15          0           0                1\n");
}

TEST(TallyOfLines, CountsAWrongGradientOfAnAcceptedOrder) {
  Tally counted;
  counted.add(line(0, Came::Disagrees, {}, false));
  EXPECT_EQ(counted.accepted_wrong, 1U);
  EXPECT_EQ(counted.accepted_right, 0U);
}

std::string file() {
  std::string text = "{\"campaign\":1,\"seed\":1}\n";
  for (const TruthLine& one : lines()) text += to_text(one) + "\n";
  return text;
}

TEST(ReportPage, IsMadeOfLinesAndWhatIsSaidAboutThem) {
  std::istringstream in(file());
  std::istringstream about("device: a device\nnot a pair\ncommit: abc\n");
  const auto page = report_page(in, about);
  ASSERT_TRUE(page) << page.error().message;
  for (const char* part :
       {"| device | a device |\n", "| commit | abc |\n",
        "| campaign | `{\"campaign\":1,\"seed\":1}` |\n", "5 orders.\n",
        "| B07 | 0 | 0 | 1 | 0 | 0 |\n", "| linear | 1 | 1 | 0 | 1 | 0 |\n",
        "| several kinds | 1 | 0 | 1 | 0 | 0 |\n", "| per-step | 1 | 1 | 0 | 1 | 0 |\n",
        "| a-fault | 0 | 1 | 1 | 1 | 0 |\n", "  accepted                2            0\n"}) {
    EXPECT_NE(page->text.find(part), std::string::npos) << part << "\n" << page->text;
  }
  EXPECT_EQ(page->text.find("not a pair"), std::string::npos);
  EXPECT_EQ(page->disagreements, 0U);
}

TEST(ReportPage, CountsWhatDisagrees) {
  std::istringstream in(file() + to_text(line(5, Came::Disagrees, {"B01"}, true)) + "\n");
  std::istringstream about;
  const auto page = report_page(in, about);
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->disagreements, 1U);
}

std::string refused_for(const std::string& text) {
  std::istringstream in(text);
  std::istringstream about;
  const auto page = report_page(in, about);
  return page ? "" : page.error().message;
}

TEST(ReportPage, RefusesLinesThatAreNotInTheirOrder) {
  std::string text = file();
  text.replace(text.find("\"n\":3"), 5, "\"n\":4");
  EXPECT_EQ(refused_for(text), "line 5 is not of order 3");
}

TEST(ReportPage, RefusesLinesThatAreNone) {
  std::string text = file();
  text.replace(text.find("\"accepted\""), 10, "\"perhaps\"");
  EXPECT_EQ(refused_for(text), "line 2 is none of a campaign's");
  EXPECT_EQ(refused_for(file() + "\n"), "line 7 is none of a campaign's");
}

TEST(ReportPage, RefusesWhatIsNoCampaigns) {
  for (const std::string text :
       {"", "{\"camp", "{\"campaign\":2,\"seed\":1}\n", "somebody's notes\n"}) {
    EXPECT_EQ(refused_for(text), "line 1 is not the header of a campaign") << text;
  }
  EXPECT_EQ(refused_for(std::string(100, '\0')), "line 1 is not the header of a campaign");
}

}  // namespace
}  // namespace capo::testing
