// Runs `capo check --format json` over tests/corpus/threads, reconstructions of real bugs.
//
//   A10/pytorch-172668-deferred-receives/   broken.csv   rejected: T09, first witness at rank 0, 3
//                                           cured.csv    accepted
//                                           args         --comm per-pair
//                                           case.json    thread, rule and place
//
// The rule alone is not enough: its witness has to begin where the thread's mistake is, and one
// finding besides it is all that a broken file may give. A twin gives none, unless case.json names
// the one warning that is right of it. The folder's README lists the cases.

#include "core/rules/rule.h"
#include "tests/support/file_text.h"
#include "tests/support/run_capo.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace capo {
namespace {

using nlohmann::json;
using testing_support::Outcome;
using testing_support::read_file;
using testing_support::run_capo;
namespace fs = std::filesystem;

const fs::path kThreads = CAPO_SOURCE_DIR "/tests/corpus/threads";
constexpr std::array<std::string_view, 4> kForms{".te", ".order", ".csv", ".json"};
constexpr std::array<std::string_view, 10> kClusters{"A1", "A2", "A3", "A4", "A5",
                                                     "A6", "A7", "A8", "A9", "A10"};
constexpr std::string_view kOfPlans = "BCEGY";  // first letters of rules about buffers and graphs
constexpr std::size_t kFindings = 2;            // the expected one and one more

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return std::vector<std::string>(std::istream_iterator<std::string>(stream), {});
}

struct Case {
  fs::path directory;
  json expected;  // case.json; discarded if it cannot be read

  [[nodiscard]] std::string name() const { return directory.filename().string(); }
  [[nodiscard]] std::string cluster() const { return directory.parent_path().filename().string(); }

  // "broken" or "cured": the files of that name.
  [[nodiscard]] std::vector<std::string> inputs(const std::string& stem) const {
    std::vector<std::string> found;
    for (const std::string_view form : kForms) {
      const std::string input = stem + std::string(form);
      if (fs::exists(directory / input)) found.push_back(input);
    }
    return found;
  }

  [[nodiscard]] std::vector<std::string> flags(const std::string& stem) const {
    const bool own = fs::exists(directory / (stem + ".args"));
    return words_of(read_file(directory / (own ? stem + ".args" : "args")));
  }

  [[nodiscard]] Outcome check(const std::string& stem) const {
    std::vector<std::string> arguments{"check", inputs(stem).at(0)};
    for (const std::string& flag : flags(stem)) arguments.push_back(flag);
    arguments.insert(arguments.end(), {"--format", "json"});
    return run_capo(arguments, {.directory = directory.string()});
  }
};

std::vector<Case> cases() {
  std::vector<Case> found;
  for (const auto& cluster : fs::directory_iterator(kThreads)) {
    if (!cluster.is_directory()) continue;
    for (const auto& entry : fs::directory_iterator(cluster.path())) {
      const std::string expected = read_file(entry.path() / "case.json");
      found.push_back(
          {.directory = entry.path(), .expected = json::parse(expected, nullptr, false)});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Case& a, const Case& b) { return a.directory < b.directory; });
  return found;
}

// {"rank": 0, "index": 3}, or null where the witness names no task.
json place_of(const json& diagnostic) {
  const json& tasks = diagnostic.at("witness").at("tasks");
  if (tasks.empty()) return nullptr;
  return {{"rank", tasks[0].at("rank")}, {"index", tasks[0].at("index")}};
}

std::size_t count_of(const json& findings) {
  return findings.at("errors").get<std::size_t>() + findings.at("warnings").get<std::size_t>();
}

TEST(Threads, ABrokenOrderIsFoundWhereItIsBroken) {
  std::map<std::string, std::multiset<std::string>> found;  // rules, by cluster
  std::size_t extra = 0;
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.directory.string());
    const Outcome outcome = one.check("broken");
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_EQ(outcome.err, "");
    const json report = json::parse(outcome.out, nullptr, false);
    if (!report.is_object()) {
      ADD_FAILURE() << "no report:\n" << outcome.out;
      continue;
    }
    const json& diagnostics = report.at("diagnostics");
    const bool in_place =
        std::any_of(diagnostics.begin(), diagnostics.end(), [&](const json& finding) {
          return finding.at("rule") == one.expected.at("rule") &&
                 place_of(finding) == one.expected.at("place");
        });
    EXPECT_TRUE(in_place) << "expected " << one.expected.at("rule") << " at "
                          << one.expected.at("place") << " in\n"
                          << diagnostics.dump(2);
    const std::size_t findings = count_of(report.at("findings"));
    EXPECT_LE(findings, kFindings) << diagnostics.dump(2);
    if (!in_place) continue;
    found[one.cluster()].insert(one.expected.at("rule").get<std::string>());
    extra += findings - 1;
  }
  std::cout << "threads found:\n";
  std::size_t all = 0;
  std::set<std::string> rules;
  for (const std::string_view cluster : kClusters) {
    const std::multiset<std::string>& here = found[std::string(cluster)];
    EXPECT_GE(here.size(), 2u) << cluster;
    std::cout << std::setw(5) << cluster << std::setw(4) << here.size() << "  ";
    for (auto rule = here.begin(); rule != here.end(); rule = here.upper_bound(*rule)) {
      std::cout << " " << *rule;
      if (here.count(*rule) > 1) std::cout << "*" << here.count(*rule);
      rules.insert(*rule);
    }
    std::cout << "\n";
    all += here.size();
  }
  const auto of_plans = std::count_if(rules.begin(), rules.end(), [](const std::string& rule) {
    return kOfPlans.find(rule[0]) != std::string_view::npos;
  });
  std::cout << all << " together by " << rules.size() << " rules, " << of_plans
            << " of them about buffers, graphs and gradients; " << extra << " findings besides\n";
  EXPECT_GE(all, 75u);
  EXPECT_GE(of_plans, 15);
}

TEST(Threads, ItsCuredTwinIsAccepted) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.directory.string());
    const Outcome outcome = one.check("cured");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
    EXPECT_EQ(outcome.err, "");
    const json report = json::parse(outcome.out, nullptr, false);
    if (!report.is_object()) {
      ADD_FAILURE() << "no report:\n" << outcome.out;
      continue;
    }
    json rules = json::array();
    for (const json& finding : report.at("diagnostics")) rules.push_back(finding.at("rule"));
    const json right = one.expected.value("twin_warning", json());
    EXPECT_EQ(rules, right.is_null() ? json::array() : json::array({right})) << outcome.out;
  }
}

TEST(Threads, TheTwinIsCuredByTheOrderOrByTheFlags) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.directory.string());
    const std::string broken = read_file(one.directory / one.inputs("broken").at(0));
    const std::string cured = read_file(one.directory / one.inputs("cured").at(0));
    const bool by_flags = fs::exists(one.directory / "cured.args");
    EXPECT_EQ(broken == cured, by_flags) << "one of the two, so that the cure is seen";
    EXPECT_EQ(one.flags("broken") == one.flags("cured"), !by_flags);
  }
}

TEST(Threads, EveryCaseIsComplete) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.directory.string());
    const auto broken = one.inputs("broken");
    const auto cured = one.inputs("cured");
    ASSERT_EQ(broken.size(), 1u);
    ASSERT_EQ(cured.size(), 1u);
    EXPECT_EQ(fs::path(broken[0]).extension(), fs::path(cured[0]).extension());

    ASSERT_TRUE(one.expected.is_object()) << "case.json";
    const std::size_t optional = one.expected.contains("twin_warning") ? 1 : 0;
    EXPECT_EQ(one.expected.size(), 6u + optional) << one.expected.dump(2);
    for (const char* member : {"source", "cluster", "what", "rule", "reconstructed_from"}) {
      EXPECT_NE(one.expected.value(member, ""), "") << member;
    }
    EXPECT_TRUE(one.expected.value("source", "").starts_with("https://"));
    EXPECT_EQ(one.expected.value("cluster", ""), one.cluster());
    EXPECT_NE(find_rule(one.expected.value("rule", "")), nullptr);
    const json place = one.expected.value("place", json());
    EXPECT_TRUE(place.is_object() && place.size() == 2 && place.contains("rank") &&
                place.contains("index"))
        << place;

    // Nothing lies there that neither the case nor one of its flags names.
    std::vector<std::string> used{broken[0], cured[0], "case.json", "args", "cured.args"};
    for (const char* stem : {"broken", "cured"}) {
      for (const std::string& flag : one.flags(stem)) used.push_back(flag);
    }
    for (const auto& entry : fs::directory_iterator(one.directory)) {
      EXPECT_NE(std::find(used.begin(), used.end(), entry.path().filename().string()), used.end())
          << entry.path();
    }
  }
}

TEST(Threads, TheReadmeListsEveryCaseOnce) {
  const std::string readme = read_file(kThreads / "README.md");
  for (const Case& one : cases()) {
    const std::string row = "| `" + one.name() + "` | [";
    const std::size_t at = readme.find(row);
    ASSERT_NE(at, std::string::npos) << one.directory;
    EXPECT_EQ(readme.find(row, at + 1), std::string::npos) << one.directory;
    const std::string line = readme.substr(at, readme.find('\n', at) - at);
    EXPECT_NE(line.find("(" + one.expected.value("source", "") + ")"), std::string::npos) << line;
    EXPECT_NE(line.find("| " + one.expected.value("rule", "") + " |"), std::string::npos) << line;
  }
  std::size_t rows = 0;
  for (std::size_t at = 0; (at = readme.find("` | [", at)) != std::string::npos; ++at) ++rows;
  EXPECT_EQ(rows, cases().size()) << "a row without a case";
}

}  // namespace
}  // namespace capo
