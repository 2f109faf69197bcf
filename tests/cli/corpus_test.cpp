// Runs `capo check` over tests/corpus/rules and compares all it prints, byte for byte.
//
//   tests/corpus/rules/S15/bad-digit.te          the input, checked in its own folder
//                          bad-digit.expected    standard output, then a line `exit 1`
//                          bad-digit.args        further flags, if it takes any
//                          ep.model              a model.json that such flags name
//
// CAPO_REBASE=1 in the environment writes the expectations anew instead of comparing them. What
// else the corpus promises is tested either way: a bad case names its rule, a good one is accepted.

#include "core/rules/rule.h"
#include "tests/support/run_capo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <ostream>
#include <sstream>

namespace capo {
namespace {

using testing_support::Outcome;
using testing_support::run_capo;
namespace fs = std::filesystem;

const fs::path kRules = CAPO_SOURCE_DIR "/tests/corpus/rules";

struct Case {
  fs::path input;
  std::string rule;  // the folder's name

  [[nodiscard]] bool good() const { return input.filename().string().starts_with("good-"); }
  [[nodiscard]] bool bad() const { return input.filename().string().starts_with("bad-"); }
  [[nodiscard]] fs::path beside(const char* extension) const {
    return fs::path(input).replace_extension(extension);
  }
};

void PrintTo(const Case& of, std::ostream* out) {
  *out << of.input.string();
}

bool is_input(const fs::path& path) {
  constexpr std::array<std::string_view, 4> kForms{".te", ".order", ".csv", ".json"};
  return std::find(kForms.begin(), kForms.end(), path.extension()) != kForms.end();
}

std::vector<fs::path> files() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(kRules)) {
    if (entry.is_regular_file()) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<Case> cases() {
  std::vector<Case> found;
  for (const fs::path& path : files()) {
    if (is_input(path)) found.push_back({.input = path, .rule = path.parent_path().filename()});
  }
  return found;
}

std::optional<std::string> text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

bool is_named_by_flags(const fs::path& path) {
  return path.extension() == ".model" || path.extension() == ".plan";
}

// Whether the case's flags name the file, which lies beside it.
bool declares(const Case& of, const fs::path& file) {
  if (!is_named_by_flags(file) || file.parent_path() != of.input.parent_path()) return false;
  std::istringstream flags(text_of(of.beside(".args")).value_or(""));
  for (std::string flag; flags >> flag;) {
    if (flag == file.filename()) return true;
  }
  return false;
}

Outcome check(const Case& of) {
  std::vector<std::string> arguments{"check", of.input.filename()};
  std::istringstream flags(text_of(of.beside(".args")).value_or(""));
  for (std::string flag; flags >> flag;) arguments.push_back(flag);
  return run_capo(arguments, {.directory = of.input.parent_path()});
}

bool rebase() {
  const char* wish = std::getenv("CAPO_REBASE");
  return wish != nullptr && std::string_view(wish) == "1";
}

class CorpusCase : public ::testing::TestWithParam<Case> {};

TEST_P(CorpusCase, AnswersAsExpected) {
  const Case& one = GetParam();
  const Outcome outcome = check(one);
  const std::string answer = outcome.out + "exit " + std::to_string(outcome.exit_code) + "\n";
  EXPECT_EQ(outcome.err, "");
  EXPECT_NE(outcome.out, "") << "nothing to compare";
  if (rebase()) {
    std::ofstream(one.beside(".expected"), std::ios::binary) << answer;
  } else if (const auto expected = text_of(one.beside(".expected"))) {
    EXPECT_EQ(answer, *expected);
  } else {
    ADD_FAILURE() << "no expectation; CAPO_REBASE=1 writes it, to be read before it is committed";
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, CorpusCase, ::testing::ValuesIn(cases()), [](const auto& row) {
  std::string name = row.param.rule + "_" + row.param.input.filename().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
});

TEST(Corpus, ABadCaseIsNotAcceptedAndNamesItsRule) {
  for (const Case& one : cases()) {
    if (!one.bad()) continue;
    const Outcome outcome = check(one);
    EXPECT_EQ(outcome.exit_code, one.rule == "I01" ? 3 : one.rule == "I02" ? 4 : 1) << one.input;
    const bool in_words = outcome.out.find("error[" + one.rule + "]: ") != std::string::npos;
    const bool in_json = outcome.out.find("\"rule\": \"" + one.rule + "\"") != std::string::npos;
    EXPECT_TRUE(in_words || in_json) << one.input;
  }
}

TEST(Corpus, AGoodCaseIsAccepted) {
  for (const Case& one : cases()) {
    if (!one.good()) continue;
    const Outcome outcome = check(one);
    EXPECT_EQ(outcome.exit_code, 0) << one.input;
    EXPECT_NE(("\n" + outcome.out).find("\naccepted"), std::string::npos) << one.input << "\n"
                                                                          << outcome.out;
  }
}

TEST(Corpus, EveryRuleHasABadAndAGoodCase) {
  const std::vector<Case> all = cases();
  for (const Rule& rule : catalogue()) {
    const auto count = [&](auto fits) {
      return std::count_if(all.begin(), all.end(),
                           [&](const Case& one) { return one.rule == rule.id && fits(one); });
    };
    EXPECT_GE(count([](const Case& one) { return one.bad(); }), 1) << rule.id;
    EXPECT_GE(count([](const Case& one) { return one.good(); }), 1) << rule.id;
  }
}

TEST(Corpus, NothingLiesThereThatNoCaseUses) {
  const std::vector<Case> all = cases();
  for (const fs::path& path : files()) {
    const auto uses = std::count_if(all.begin(), all.end(), [&](const Case& one) {
      return path == one.input || path == one.beside(".expected") || path == one.beside(".args") ||
             declares(one, path);
    });
    // Several cases may be relative to one model or plan.
    EXPECT_TRUE(is_named_by_flags(path) ? uses > 0 : uses == 1)
        << path << ": no case, or two of one name";
  }
  for (const Case& one : all) {
    EXPECT_NE(find_rule(one.rule), nullptr) << one.rule;
    EXPECT_TRUE(one.good() || one.bad()) << one.input << ": is it good or bad?";
  }
}

}  // namespace
}  // namespace capo
