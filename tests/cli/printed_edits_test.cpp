// Every edit that capo prints for an order of the corpora or the examples cures: the finding that
// suggests it is gone once it is made, and no rule has more errors than before.

#include "tests/support/corpus_orders.h"
#include "tests/support/file_text.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace capo::testing_support {
namespace {

using nlohmann::json;

const std::vector<std::string> kAsPrinted{"--format", "json"};
const std::vector<std::string> kAllFindings{"--format", "json", "--max-findings", "100000"};

// How often each rule is broken, by severity and id.
using Broken = std::map<std::pair<std::string, std::string>, int>;

Broken broken_in(const json& report) {
  Broken broken;
  for (const json& finding : report.at("diagnostics")) {
    ++broken[{finding.at("severity"), finding.at("rule")}];
  }
  return broken;
}

std::string with_edits(std::string text, const json& edits) {
  std::vector<json> last_first(edits.begin(), edits.end());
  const auto offset = [](const json& edit) { return edit.at("span").at("offset").get<int>(); };
  std::sort(last_first.begin(), last_first.end(),
            [&](const json& a, const json& b) { return offset(a) > offset(b); });
  for (const json& edit : last_first) {
    const auto begin = static_cast<std::size_t>(offset(edit));
    text.replace(begin, edit.at("span").at("length"), edit.at("replacement").get<std::string>());
  }
  return text;
}

// The reports of an order, or of a text in its place; discarded if there is none.
json report_of(const Outcome& outcome) {
  return json::parse(outcome.out, nullptr, false);
}

class Edits {
 public:
  void try_all_of(const CorpusOrder& order) {
    const json printed = report_of(order.check(kAsPrinted));
    if (!printed.is_object()) return;
    std::optional<Broken> before;
    for (const json& finding : printed.at("diagnostics")) {
      const json& help = finding.at("help");
      if (help.is_null() || help.at("edits").empty()) continue;
      if (!before) before = broken_in(report_of(order.check(kAllFindings)));
      ++made_[finding.at("severity")];
      try_one(order, finding, *before);
    }
  }

  [[nodiscard]] int made(const std::string& severity) const {
    const auto of = made_.find(severity);
    return of == made_.end() ? 0 : of->second;
  }

 private:
  static void try_one(const CorpusOrder& order, const json& finding, const Broken& before) {
    const std::string message = finding.at("message");
    SCOPED_TRACE(order.file.string() + ": " + message);
    const std::string text = with_edits(read_file(order.file), finding.at("help").at("edits"));
    const json report = report_of(order.check(kAllFindings, text));
    ASSERT_TRUE(report.is_object()) << "the edited order has no report:\n" << text;
    const Broken after = broken_in(report);
    const auto times = [](const Broken& broken, const auto& rule) {
      const auto of = broken.find(rule);
      return of == broken.end() ? 0 : of->second;
    };
    const std::pair<std::string, std::string> own{finding.at("severity"), finding.at("rule")};
    EXPECT_LT(times(after, own), times(before, own)) << text;
    for (const auto& [rule, often] : after) {
      if (rule.first == "warning") continue;
      EXPECT_LE(often, times(before, rule)) << rule.second << "\n" << text;
    }
    const bool slip = message.find("is probably") != std::string::npos;
    EXPECT_TRUE(!slip || report.at("verdict") == "accepted") << text;
  }

  std::map<std::string, int> made_;  // by severity of the finding
};

TEST(PrintedEdits, OfEveryCorpusCaseCure) {
  const ScratchFolder folder;
  const std::vector<CorpusOrder> orders = corpus_orders(folder);
  Edits edits;
  for (const CorpusOrder& order : orders) edits.try_all_of(order);
  std::printf("%zu orders, %d edits of errors and %d of warnings\n", orders.size(),
              edits.made("error"), edits.made("warning"));
  EXPECT_GE(orders.size(), 700U);
  EXPECT_GE(edits.made("error"), 30);
}

}  // namespace
}  // namespace capo::testing_support
