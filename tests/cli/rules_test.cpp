// `capo rules`, and the page docs/rules.md that it prints.

#include "core/rules/rule.h"
#include "tests/support/file_text.h"
#include "tests/support/run_capo.h"

#include <gtest/gtest.h>

#include <sstream>

namespace capo {
namespace {

using testing_support::Outcome;
using testing_support::read_file;
using testing_support::run_capo;

TEST(Rules, ListsEveryRuleOnALineInTheOrderOfTheCatalogue) {
  const Outcome outcome = run_capo({"rules"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  std::istringstream lines(outcome.out);
  std::string line;
  for (const Rule& rule : catalogue()) {
    ASSERT_TRUE(std::getline(lines, line)) << rule.id;
    std::istringstream words(line);
    std::string id;
    std::string name;
    std::string family;
    words >> id >> name >> family >> std::ws;
    std::string title;
    std::getline(words, title);
    EXPECT_EQ(id, rule.id);
    EXPECT_EQ(name, rule.name);
    EXPECT_EQ(family, name_of(rule.family));
    EXPECT_EQ(title, rule.title);
  }
  EXPECT_FALSE(std::getline(lines, line)) << line;
}

TEST(Rules, ThePageInTheDocumentationIsTheOneThatItPrints) {
  const Outcome outcome = run_capo({"rules", "--markdown"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, read_file(CAPO_SOURCE_DIR "/docs/rules.md"))
      << "make it anew with `capo rules --markdown > docs/rules.md`";
}

TEST(Rules, ThePageHasASectionForEveryRule) {
  const std::string page = run_capo({"rules", "--markdown"}).out;
  for (const Rule& rule : catalogue()) {
    const std::string heading =
        "\n### " + std::string(rule.id) + " " + std::string(rule.name) + "\n";
    const std::size_t begin = page.find(heading);
    ASSERT_NE(begin, std::string::npos) << rule.id;
    const std::string section =
        page.substr(begin + heading.size(), page.find("\n#", begin + heading.size()) - begin);
    EXPECT_NE(section.find("*" + std::string(rule.title) + "*"), std::string::npos) << rule.id;
    EXPECT_GT(section.size(), 150u) << rule.id << ": no paragraph of its essay";
  }
}

}  // namespace
}  // namespace capo
