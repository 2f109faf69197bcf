// The essays that `capo explain` prints are tested like code: each shows an order that breaks its
// rule and nothing else, and one that capo accepts.
//
//   ## Breaks it
//
//   ```te --delayed all          the form, and flags that `capo check` needs
//   [1, -1]
//   ```
//
// A flag `--model model.json` means what stands under `## Declared`.

#include "core/rules/rule.h"
#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <optional>
#include <sstream>

namespace capo {
namespace {

using testing_support::Outcome;
using testing_support::run_capo;

struct Example {
  std::string form;
  std::vector<std::string> flags;
  std::string text;
};

// The lines of the section under `title`, up to the next one.
std::vector<std::string> section(const std::string& essay, const std::string& title) {
  std::vector<std::string> lines;
  std::istringstream in(essay);
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("## ")) {
      inside = line == "## " + title;
    } else if (inside) {
      lines.push_back(line);
    }
  }
  return lines;
}

// The fenced blocks of a section; an open fence is none.
std::vector<Example> examples(const std::vector<std::string>& lines) {
  std::vector<Example> found;
  std::optional<Example> open;
  for (const std::string& line : lines) {
    if (!line.starts_with("```")) {
      if (open) open->text += line + "\n";
      continue;
    }
    if (open) {
      found.push_back(*std::exchange(open, std::nullopt));
      continue;
    }
    std::istringstream words(line.substr(3));
    open.emplace();
    words >> open->form;
    for (std::string flag; words >> flag;) open->flags.push_back(flag);
  }
  return found;
}

class Essay : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const Outcome outcome = run_capo({"explain", GetParam()});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    essay_ = outcome.out;
  }

  // The section's one example, checked as a file; nothing where the section is not as it should be.
  std::optional<Outcome> check_section(const std::string& title) {
    const std::vector<Example> blocks = examples(section(essay_, title));
    EXPECT_EQ(blocks.size(), 1u) << "fenced blocks under `## " << title << "`";
    if (blocks.size() != 1) return std::nullopt;
    const Example& example = blocks.front();
    const testing_support::ScratchFolder folder;
    const std::string path = folder.write("essay." + example.form, example.text);
    std::vector<std::string> arguments{"check", path, "--form", example.form};
    for (const std::string& flag : example.flags) {
      arguments.push_back(flag == "model.json" ? folder.write(flag, declared_model()) : flag);
    }
    arguments.insert(arguments.end(), {"--format", "json"});
    const Outcome outcome = run_capo(arguments);
    EXPECT_EQ(outcome.err, "");
    return outcome;
  }

  // What an essay that needs a model shows under `## Declared`.
  [[nodiscard]] std::string declared_model() const {
    const std::vector<Example> blocks = examples(section(essay_, "Declared"));
    EXPECT_EQ(blocks.size(), 1u);
    return blocks.empty() ? "" : blocks.front().text;
  }

  std::string essay_;
};

TEST_P(Essay, BeginsWithTheRulesTitle) {
  const Rule* rule = find_rule(GetParam());
  ASSERT_NE(rule, nullptr);
  const std::string title = "# " + std::string(rule->id) + " " + std::string(rule->name) + ": " +
                            std::string(rule->title) + "\n";
  EXPECT_TRUE(essay_.starts_with(title)) << essay_.substr(0, essay_.find('\n'));
}

TEST_P(Essay, ShowsAnOrderThatBreaksThisRuleAndNoOther) {
  const auto outcome = check_section("Breaks it");
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->exit_code, GetParam() == "I01" ? 3 : GetParam() == "I02" ? 4 : 1);
  const auto diagnostics = nlohmann::json::parse(outcome->out).at("diagnostics");
  EXPECT_FALSE(diagnostics.empty());
  for (const auto& diagnostic : diagnostics)
    EXPECT_EQ(diagnostic.at("rule"), GetParam()) << diagnostic;
}

TEST_P(Essay, ShowsTheCuredOrder) {
  const auto outcome = check_section("Cured");
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->exit_code, 0) << outcome->out;
  EXPECT_EQ(nlohmann::json::parse(outcome->out).at("verdict"), "accepted");
}

TEST_P(Essay, IsFoundByTheRulesNameToo) {
  EXPECT_EQ(run_capo({"explain", std::string(find_rule(GetParam())->name)}).out, essay_);
}

std::vector<std::string> every_rule() {
  std::vector<std::string> ids;
  for (const Rule& rule : catalogue()) ids.emplace_back(rule.id);
  return ids;
}

INSTANTIATE_TEST_SUITE_P(EveryRule, Essay, ::testing::ValuesIn(every_rule()),
                         [](const auto& rule) { return rule.param; });

}  // namespace
}  // namespace capo
