// Megatron's own orders with layers as graphs, over the configurations that people run: each is
// accepted under plan te or rejected by a rule that cites Megatron's source, and no report is
// longer than a screen.
//
// tests/data/megatron_grid.txt has a line for each configuration: verdict, first rule and number of
// errors, with nothing declared of communicators and transfers. CAPO_REBASE=1 writes it anew.

#include "core/base/index.h"
#include "core/frameworks/megatron/orders.h"
#include "core/report/report.h"
#include "core/rules/check.h"
#include "tests/support/data.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

namespace capo {
namespace {

constexpr std::size_t kScreen = 60;

struct Configuration {
  std::int64_t pipeline;
  std::int64_t virtual_stages;
  std::int64_t microbatches;
  std::vector<std::int64_t> layers;
  MegatronCalls calls;
};

std::vector<Configuration> grid() {
  std::vector<Configuration> all;
  for (std::int64_t pipeline = 2; pipeline <= 8; ++pipeline) {
    for (std::int64_t stages = 1; stages <= 4; ++stages) {
      const auto chunks = as_index(stages);
      std::vector<std::vector<std::int64_t>> shapes;
      for (std::int64_t each = 1; each <= 4; ++each) shapes.emplace_back(chunks, each);
      const std::vector<std::int64_t> uneven{1, 3, 2, 4};
      const std::vector<std::int64_t> falling{4, 2, 3, 1};
      if (stages > 1) {
        shapes.emplace_back(uneven.begin(), uneven.begin() + stages);
        shapes.emplace_back(falling.begin(), falling.begin() + stages);
      }
      for (const std::int64_t times : {1, 2, 8}) {
        for (const auto& layers : shapes) {
          for (const MegatronCalls calls : {MegatronCalls::Batch, MegatronCalls::Overlap}) {
            all.push_back({pipeline, stages, times * pipeline, layers, calls});
          }
        }
      }
    }
  }
  return all;
}

std::string name_of(const Configuration& of) {
  return fmt::format("pp {} vp {} m {} layers {} {}", of.pipeline, of.virtual_stages,
                     of.microbatches, fmt::join(of.layers, ","), capo::name_of(of.calls));
}

Input input_of(const Configuration& of) {
  const megatron::Request request{
      .configuration = {.pipeline = of.pipeline,
                        .virtual_stages =
                            of.virtual_stages > 1 ? std::optional(of.virtual_stages) : std::nullopt,
                        .microbatches = of.microbatches,
                        .ep_overlap = true},
      .layers_per_chunk = of.layers,
      .weight_gradients = megatron::WeightGradients::Delayed};
  Input input{.form = Form::OrderFile,
              .schedule = megatron::schedule_of(megatron::orders_of(request).value())};
  input.schedule.p2p = of.calls;
  return input;
}

CheckOptions options() {
  CheckOptions options;
  options.plan.kind = PlanKind::Te;
  options.modules.list = {{.name = "grouped-mlp", .kind = ModuleKind::GroupedMlp}};
  options.modules.layers = {{{0}}};
  return options;
}

// Returns the line of the table, and looks at what a user would see.
std::string judged(const Configuration& of, std::set<std::string_view>& rules) {
  const Input input = input_of(of);
  CheckResult result = check(input, options());
  const Verdict verdict = result.verdict;
  std::string_view rule = "-";
  if (const Diagnostic* first = first_finding(result.diagnostics)) {
    if (first->severity == Severity::Error) rule = first->rule;
  }
  for (const Diagnostic& finding : result.diagnostics.kept()) {
    if (finding.severity == Severity::Error) rules.insert(finding.rule);
  }
  const std::size_t errors = result.diagnostics.errors();
  const std::string text = to_text(report_of(input, std::move(result), {}));
  EXPECT_LE(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')), kScreen)
      << name_of(of) << "\n"
      << text;
  return fmt::format("{}: {} {} {}", name_of(of), capo::name_of(verdict), rule, errors);
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
  const std::vector<Configuration> all = grid();
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
