// Megatron's own orders with layers as graphs, over the configurations that people run: each is
// accepted under plan te or rejected by a rule that cites Megatron's source, and no report is
// longer than a screen.
//
// tests/data/megatron_grid.txt has a line for each configuration: verdict, first rule and number of
// errors, with nothing declared of communicators and transfers. CAPO_REBASE=1 writes it anew.

#include "core/report/report.h"
#include "core/rules/check.h"
#include "tests/support/data.h"
#include "tests/support/megatron_grid.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

namespace capo {
namespace {

using testing_support::grid_options;
using testing_support::GridStep;
using testing_support::megatron_grid;

constexpr std::size_t kScreen = 60;

// Returns the line of the table, and looks at what a user would see.
std::string judged(const GridStep& step, std::set<std::string_view>& rules) {
  const Input input = input_of(step);
  CheckResult result = check(input, grid_options());
  const Verdict verdict = result.verdict;
  std::string_view rule = "-";
  if (const Diagnostic* first = result.diagnostics.foremost()) {
    if (first->severity == Severity::Error) rule = first->rule;
  }
  for (const Diagnostic& finding : result.diagnostics.kept()) {
    if (finding.severity == Severity::Error) rules.insert(finding.rule);
  }
  const std::size_t errors = result.diagnostics.errors();
  const std::string text = to_text(report_of(input, std::move(result), {}));
  EXPECT_LE(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')), kScreen)
      << name_of(step) << "\n"
      << text;
  return fmt::format("{}: {} {} {}", name_of(step), capo::name_of(verdict), rule, errors);
}

std::vector<std::string> table() {
  std::ifstream file(testing_support::data_path("megatron_grid.txt"));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with('#')) lines.push_back(line);
  }
  return lines;
}

void write_table(const std::vector<std::string>& lines) {
  const auto accepted = std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find(": accepted") != std::string::npos;
  });
  std::ofstream file(testing_support::data_path("megatron_grid.txt"));
  file << fmt::format(
      "# capo generate megatron --pp P --vp V --microbatches M --layers L --rank all --overlap "
      "--delayed-wgrad --format order | capo check - --plan te --modules grouped-mlp --p2p CALLS\n"
      "# {} of {} are accepted: {:.1f} %\n",
      accepted, lines.size(),
      100.0 * static_cast<double>(accepted) / static_cast<double>(lines.size()));
  for (const std::string& line : lines) file << line << "\n";
}

bool cites_megatron(std::string_view rule) {
  std::ifstream file(fmt::format("{}/core/rules/essays/{}.md", CAPO_SOURCE_DIR, rule));
  std::stringstream essay;
  essay << file.rdbuf();
  return essay.str().find("Megatron-LM") != std::string::npos &&
         essay.str().find(".py") != std::string::npos;
}

TEST(LayeredGrid, EveryConfigurationIsAcceptedOrExplained) {
  const bool writes = std::getenv("CAPO_REBASE") != nullptr;
  const std::vector<GridStep> all = megatron_grid();
  const std::vector<std::string> expected = table();
  std::vector<std::string> lines;
  std::set<std::string_view> rules;
  ASSERT_TRUE(writes || expected.size() == all.size());
  for (std::size_t at = 0; at < all.size(); ++at) {
    lines.push_back(judged(all[at], rules));
    EXPECT_TRUE(writes || lines.back() == expected[at]) << lines.back();
  }
  if (writes) write_table(lines);
  for (const std::string_view rule : rules) {
    EXPECT_TRUE(cites_megatron(rule)) << rule;
  }
}

}  // namespace
}  // namespace capo
