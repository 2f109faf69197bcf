#include "core/minimise/minimise.h"

#include "cli/commands/commands.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "cli/options/judged_input.h"
#include "core/base/nearest.h"
#include "core/base/plural.h"
#include "core/report/report.h"
#include "core/rules/check.h"
#include "core/text/order_printer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capo::cli {

namespace {

struct MinimiseRequest : InputRequest {
  std::string rule;  ///< id or name; empty: of the first finding
  std::string output = "-";
  MinimiseOptions minimise;
};

std::vector<std::string_view> broken_rules(const CheckResult& result) {
  std::vector<std::string_view> rules;
  for (const Diagnostic& finding : result.diagnostics.kept()) {
    if (std::find(rules.begin(), rules.end(), finding.rule) == rules.end()) {
      rules.push_back(finding.rule);
    }
  }
  return rules;
}

std::string_view first_broken(const CheckResult& result) {
  const auto& kept = result.diagnostics.kept();
  const auto error = std::find_if(kept.begin(), kept.end(), [](const Diagnostic& finding) {
    return finding.severity == Severity::Error;
  });
  return error == kept.end() ? kept.front().rule : error->rule;
}

const Rule& named_rule(const std::string& name) {
  if (const Rule* rule = find_rule(name)) return *rule;
  std::vector<std::string_view> names;
  for (const Rule& rule : catalogue()) {
    names.push_back(rule.id);
    names.push_back(rule.name);
  }
  throw CLI::ValidationError("--rule",
                             fmt::format("there is no rule `{}`; {}", name,
                                         did_you_mean(name, names, "`capo rules` lists them")));
}

// The id of the rule to keep broken; empty if there is nothing to minimise.
std::string_view rule_of(const MinimiseRequest& request, const CheckResult& result) {
  if (request.rule.empty()) return result.diagnostics.empty() ? "" : first_broken(result);
  const std::string_view id = named_rule(request.rule).id;
  const std::vector<std::string_view> broken = broken_rules(result);
  if (std::find(broken.begin(), broken.end(), id) != broken.end()) return id;
  throw CLI::ValidationError(
      "--rule",
      fmt::format("{} is not broken; {}", id,
                  broken.empty() ? "the order breaks no rule"
                                 : fmt::format("broken {} {}", broken.size() == 1 ? "is" : "are",
                                               fmt::join(broken, ", "))));
}

std::size_t entries_of(const Schedule& schedule) {
  std::size_t entries = 0;
  for (const RankOrder& rank : schedule.ranks) {
    entries += rank.order.size() + (rank.replay ? rank.replay->size() : 0);
  }
  return entries;
}

std::string summary(const Schedule& before, const Minimised& least, std::string_view rule) {
  return fmt::format("minimise: {} still broken; {} -> {}, {} -> {}, {}{}\n", rule,
                     counted(entries_of(before), "entry", "entries"), entries_of(least.schedule),
                     counted(before.ranks.size(), "rank"), least.schedule.ranks.size(),
                     counted(least.checks, "check"),
                     least.at_limit ? "; --max-checks ended it before it was minimal" : "");
}

int write(const Minimised& least, const MinimiseRequest& request, const std::string& summary) {
  const std::string text = print_order_file(least.schedule);
  const auto error = write_output(request.output, text);
  if (error) return fail(*error);
  print_stderr(summary);
  return least.at_limit ? kNoVerdict : kAccepted;
}

int minimise_input(const MinimiseRequest& request, const Input& input,
                   const CheckOptions& declared) {
  const std::string_view rule = rule_of(request, check(input, declared));
  if (rule.empty()) {
    print_stderr("minimise: the order breaks no rule; there is nothing to minimise\n");
    return kAccepted;
  }
  MinimiseOptions options = request.minimise;
  options.limits = request.input.limits;
  options.limits.bytes = Limits{}.bytes;  // a TE list is shorter than the same as .order text
  const auto least = minimise(input, rule, declared, options);
  if (!least) {
    print_error({.kind = ErrorKind::Unreadable,
                 .message = fmt::format("{} is not broken by the same schedule as .order text, so "
                                        "nothing smaller can be written",
                                        rule),
                 .help = "it is about the form of the input, or an entry that is no action; `capo "
                         "check` shows it"});
    return kFindings;
  }
  return write(*least, request, summary(input.schedule, *least, rule));
}

int run_minimise(const MinimiseRequest& request) {
  if (request.output.empty())
    throw CLI::ValidationError("--output", "needs a file name, or - for standard output");
  if (!request.rule.empty()) static_cast<void>(named_rule(request.rule));
  const auto judged = judged_input(request);
  if (!judged) return refuse(judged.error());
  return minimise_input(request, judged->input, judged->check_options());
}

}  // namespace

Run add_minimise(CLI::App& app) {
  auto* command = app.add_subcommand(
      "minimise", "The smallest schedule that still breaks the same rule, as .order text");
  command->footer("Example: capo minimise schedule.csv --rule T09 -o minimal.order");
  auto request = std::make_shared<MinimiseRequest>();
  request->input.add_to(*command);
  request->input.add_rank_to(*command);
  request->environment.add_to(*command);
  request->plan.emplace().add_to(*command);
  command->add_option("--rule", request->rule,
                      "Id or name of the rule to keep broken; default: that of the first finding");
  command->add_option("-o,--output", request->output, "Where to write; - is standard output")
      ->capture_default_str();
  command
      ->add_option("--max-checks", request->minimise.max_checks,
                   "Candidates to check; then the best so far is written, with exit code 4")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 40))
      ->capture_default_str();
  return [request] { return run_minimise(*request); };
}

}  // namespace capo::cli
