// `capo minimise FILE`: the smallest schedule that still breaks the same rule, in the notation of
// the input. A notation that cannot say it is left for .order text, with a note.

#include "core/minimise/minimise.h"
#include "core/minimise/same_edit.h"

#include "cli/commands/commands.h"
#include "cli/commands/cured.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "cli/options/judged_input.h"
#include "core/base/nearest.h"
#include "core/base/plural.h"
#include "core/convert/written.h"
#include "core/cures/cures.h"
#include "core/frameworks/te/to_te_list.h"
#include "core/input/load.h"
#include "core/report/report.h"
#include "core/rules/check.h"
#include "core/text/order_text.h"
#include "core/text/scan.h"

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
  bool same_edit = false;
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

std::size_t entries_left(const Schedule& schedule) {
  std::size_t entries = 0;
  for (const RankOrder& rank : schedule.ranks) {
    entries += rank.order.size() + (rank.replay ? rank.replay->size() : 0);
  }
  return entries;
}

// Says "; `-2` at index 3 is written for `-2.5`" in the words of a TE list, which alone has slips.
std::string kept_mistake(const Minimised& least) {
  if (!least.mistake) return "";
  const Entry& entry = least.schedule.ranks.front().order[least.mistake->position];
  return fmt::format("; {} at index {} is written for {}", shown(te_token(entry.action())),
                     least.mistake->position, shown(te_token(least.mistake->meant)));
}

std::string summary(const Schedule& before, const Minimised& least, std::string_view rule) {
  return fmt::format("minimise: {} still broken; {} -> {}, {} -> {}, {}{}{}\n", rule,
                     counted(entries_left(before), "entry", "entries"),
                     entries_left(least.schedule), counted(before.ranks.size(), "rank"),
                     least.schedule.ranks.size(), counted(least.checks, "check"),
                     kept_mistake(least),
                     least.at_limit ? "; --max-checks ended it before it was minimal" : "");
}

bool breaks(const CheckResult& result, std::string_view rule, bool as_error) {
  const auto& kept = result.diagnostics.kept();
  return std::any_of(kept.begin(), kept.end(), [&](const Diagnostic& finding) {
    return finding.rule == rule && (!as_error || finding.severity == Severity::Error);
  });
}

CheckResult check_judged(const JudgedInput& judged) {
  return check(judged.input, judged.check_options());
}

// Keeps the flags that a reader of the written text needs; it says by itself what flags about its
// form declared.
InputRequest without_declarations(const MinimiseRequest& request) {
  InputRequest again = request;
  again.input.layers.clear();
  again.input.delayed.clear();
  again.input.stage_to_rank.clear();
  again.input.csv.reset();
  again.input.microbatches = 0;
  again.input.stages = 0;
  again.input.rank.reset();
  again.input.limits.bytes = Limits{}.bytes;
  return again;
}

struct Written {
  std::string text;
  std::string note;  ///< why the text is not in the notation of the input; empty if it is
};

// A list does not say how its chunks are wired; --topology does, of the input and of what is left.
Schedule without_wiring(Schedule schedule) {
  if (schedule.topology == Topology::Custom) return schedule;
  schedule.topology = Topology::Independent;
  for (RankOrder& rank : schedule.ranks) rank.stages.clear();
  return schedule;
}

// Prints the least schedule as the input was written, if that text breaks the rule under the same
// flags.
Written written_as(TextForm form, const Minimised& least, const MinimiseRequest& request,
                   const JudgedInput& judged, std::string_view rule) {
  std::string own = print_order_file(least.schedule);
  if (form == TextForm::OrderFile) return {.text = std::move(own), .note = ""};
  const bool list = form == TextForm::TeList;
  auto text = written(list ? without_wiring(least.schedule) : least.schedule, form, Beside::Refuse,
                      request.input.limits);
  if (!text) return {.text = std::move(own), .note = text.error().reason};
  const InputRequest again = without_declarations(request);
  const JudgeInput judge = check_judged;
  const auto result = judge_under(again, judged, judge)(*text);
  const bool as_error = breaks(check_judged(judged), rule, true);
  if (result && breaks(*result, rule, as_error)) return {.text = *std::move(text), .note = ""};
  return {.text = std::move(own),
          .note = fmt::format("as {} and under the same flags it would not break {}",
                              list ? "a TE list" : "a table", rule)};
}

// An output that is called .order names its form; any other has that of the input.
TextForm form_of_output(const MinimiseRequest& request, const Input& input) {
  return request.output.ends_with(".order") ? TextForm::OrderFile : notation_of(input);
}

int write(const Written& least, const MinimiseRequest& request, const std::string& summary,
          bool at_limit) {
  const auto error = write_output(request.output, least.text);
  if (error) return fail(*error);
  if (!least.note.empty()) {
    print_stderr(fmt::format("note: written as .order text: {}\n", least.note));
  }
  print_stderr(summary);
  return at_limit ? kNoVerdict : kAccepted;
}

// Asks for the entry that was written for another to stay, or else for a cure of the rule.
void keep_edit(MinimiseOptions& options, const CheckResult& result, const MinimiseRequest& request,
               const JudgedInput& judged, std::string_view rule) {
  const JudgeInput check = check_judged;
  const JudgeText judge = judge_under(request, judged, check);
  if (const auto slip = find_slip(result, judged.input, judge)) {
    options.mistake = {.position = slip->position, .meant = slip->meant};
    return;
  }
  options.same_cure = !cures_of(judged.input, result, rule, judge).empty();
  if (options.same_cure) return;
  throw CLI::ValidationError(
      "--same-edit", fmt::format("no edit is known that cures {} in this order; without the flag "
                                 "the smallest breach of the rule is written",
                                 rule));
}

Error nothing_smaller(std::string_view rule, bool same_edit) {
  if (same_edit) {
    return {.kind = ErrorKind::Unreadable,
            .message = fmt::format("{} is not cured by the same edit in the same schedule as "
                                   ".order text, so nothing smaller can be written",
                                   rule),
            .help = "without --same-edit the smallest breach of the rule is written"};
  }
  return {.kind = ErrorKind::Unreadable,
          .message = fmt::format("{} is not broken by the same schedule as .order text, so "
                                 "nothing smaller can be written",
                                 rule),
          .help =
              "it is about the form of the input, or an entry that is no action; `capo "
              "check` shows it"};
}

int minimise_input(const MinimiseRequest& request, const JudgedInput& judged) {
  const CheckResult result = check_judged(judged);
  const std::string_view rule = rule_of(request, result);
  if (rule.empty()) {
    print_stderr("minimise: the order breaks no rule; there is nothing to minimise\n");
    return kAccepted;
  }
  MinimiseOptions options = request.minimise;
  options.limits = request.input.limits;
  options.limits.bytes = Limits{}.bytes;  // a TE list is shorter than the same as .order text
  const TextForm form = form_of_output(request, judged.input);
  options.fixed_topology = form == TextForm::TorchCsv;
  if (request.same_edit) keep_edit(options, result, request, judged, rule);
  auto least = minimise(judged.input, rule, judged.check_options(), options);
  if (!least) {
    print_error(nothing_smaller(rule, request.same_edit));
    return kFindings;
  }
  Written text = written_as(form, *least, request, judged, rule);
  if (options.fixed_topology && !text.note.empty()) {  // .order text can name the topology
    options.fixed_topology = false;
    least = minimise(judged.input, rule, judged.check_options(), options);
    text.text = print_order_file(least->schedule);
  }
  return write(text, request, summary(judged.input.schedule, *least, rule), least->at_limit);
}

int run_minimise(const MinimiseRequest& request) {
  if (request.output.empty())
    throw CLI::ValidationError("--output", "needs a file name, or - for standard output");
  if (!request.rule.empty()) static_cast<void>(named_rule(request.rule));
  const auto judged = judged_input(request);
  if (!judged) return refuse(judged.error());
  return minimise_input(request, *judged);
}

}  // namespace

Run add_minimise(CLI::App& command) {
  command.footer("Example: capo minimise schedule.csv --rule T09 -o minimal.csv");
  auto request = std::make_shared<MinimiseRequest>();
  request->input.add_to(command);
  request->input.add_rank_to(command);
  request->environment.add_to(command);
  request->plan.emplace().add_to(command);
  command.add_option("--rule", request->rule,
                     "Id or name of the rule to keep broken; default: that of the first finding");
  command.add_flag("--same-edit", request->same_edit,
                   "Keep the mistake that was made: what is left is cured by the edit that cures "
                   "the input, where `check` knows one; default: the smallest breach of the rule");
  command.add_option("-o,--output", request->output, "Where to write; - is standard output")
      ->capture_default_str();
  command
      .add_option("--max-checks", request->minimise.max_checks,
                  "Candidates to check; then the best so far is written, with exit code 4")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 40))
      ->capture_default_str();
  return [request] { return run_minimise(*request); };
}

}  // namespace capo::cli
