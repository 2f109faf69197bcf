#include "python/judge.h"

#include "core/base/embedded_text.h"
#include "core/base/nearest.h"
#include "core/base/plural.h"
#include "core/cures/cures.h"
#include "core/frameworks/te/contract.h"
#include "core/minimise/minimise.h"
#include "core/model/environment.h"
#include "core/model/model.h"
#include "core/order/declare.h"
#include "core/profiles/consult.h"
#include "core/project/project_file.h"
#include "core/rules/context.h"
#include "core/rules/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace capo::python {

namespace {

// Findings of a rule that text puts together by their patterns, as on the command line.
constexpr std::size_t kFindingsInText = 10'000;

// TransformerEngine has None where a caller gives no layers, and says so of weight gradients.
Input as_called(const AskedProfile& asked, Input input) {
  if (asked.profile != Profile::Te || input.form != Form::TeList) return input;
  for (RankOrder& rank : input.schedule.ranks) {
    if (rank.layers.form == Layers::Form::Unstated) rank.layers.form = Layers::Form::Null;
  }
  return input;
}

[[noreturn]] void refuse(const char* argument, const std::string& why) {
  throw std::invalid_argument(fmt::format("{}: {}", argument, why));
}

void refuse_unused(const Input& input, const Declared& declared) {
  if (input.form == Form::TeList) return;
  const char* why = "is for lists; other forms state it themselves";
  if (declared.load.te.layers.form != Layers::Form::Unstated) refuse("num_layers_per_chunk", why);
  if (declared.load.te.delayed) refuse("delayed", why);
}

// Kinds that are named one for each chunk fit a rank that has as many.
void refuse_other_chunks(const Schedule& schedule, const ModuleTable& modules) {
  if (modules.layers.size() != 1 || modules.layers.front().size() < 2) return;
  const std::size_t named = modules.layers.front().size();
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const std::int32_t chunks = schedule.ranks[r].chunks - schedule.ranks[r].strays;
    if (chunks == 0 || std::cmp_equal(named, chunks)) continue;
    refuse("modules",
           fmt::format("names {} kinds, but rank {} has {}", named, r, counted(chunks, "chunk")));
  }
}

const Rule& rule_named(const std::string& name) {
  if (const Rule* rule = find_rule(name)) return *rule;
  std::vector<std::string_view> names;
  for (const Rule& rule : catalogue()) {
    names.push_back(rule.id);
    names.push_back(rule.name);
  }
  refuse("rule", fmt::format("there is no rule `{}`; {}", name,
                             did_you_mean(name, names, "`capo rules` lists them")));
}

std::string_view first_error(const CheckResult& result) {
  for (const Diagnostic& finding : result.diagnostics.kept()) {
    if (finding.severity == Severity::Error) return finding.rule;
  }
  refuse("order", "it breaks no rule, so there is nothing to minimise");
}

}  // namespace

std::string page_of(const std::string& name) {
  if (name == "contract") return gradients::contract_page();
  const Rule& rule = rule_named(name);
  const auto& essays = embedded_essays();
  const auto found = std::find_if(essays.begin(), essays.end(),
                                  [&](const EmbeddedText& essay) { return essay.name == rule.id; });
  return std::string(found->text);  // a test holds the catalogue to its essays
}

void refuse_unknown_profile(const std::string& name) {
  const std::vector<AskedProfile> known = known_profiles();
  std::vector<std::string_view> names;
  for (const AskedProfile& profile : known) names.emplace_back(profile.name);
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  refuse("profiles",
         fmt::format("no profile `{}`; {}", name,
                     did_you_mean(name, names, "there are " + listed(std::span(names).first(4)))));
}

void place(Input& input, const Declared& declared) {
  refuse_unused(input, declared);
  Schedule& schedule = input.schedule;
  if (declared.model.topology) {
    const auto why = declare_topology(schedule, *declared.model.topology, declared.model.stages);
    if (why) refuse("topology", *why);
  }
  refuse_other_chunks(schedule, declared.model.modules);
  if (const auto why = declare_layers(schedule, declared.model.modules.layers)) {
    refuse("modules", *why);
  }
  if (const auto why = misfit_of_groups(declared.model.groups, schedule.ranks.size()))
    refuse("modules", *why);
  if (const auto why = misfit_of_amax_group(declared.model.environment, schedule.ranks.size()))
    refuse("modules", *why);
  const auto& model_chunks = declared.model.plan.model_chunks;
  if (!model_chunks.empty()) {
    if (const auto why = declare_model_chunks(schedule, model_chunks)) refuse("modules", *why);
  }
  if (declared.model.environment.communicators && schedule.topology == Topology::Independent) {
    refuse("comm",
           "the chunks are not wired to each other, so nobody communicates; topology wires them");
  }
}

Result<std::vector<Suppression>, RefusedInput> suppressions_of(
    const Input& input, const std::optional<ProjectText>& project) {
  auto suppressions = suppressions_in(input.source, notation_of(input));
  if (!suppressions) return RefusedInput{input.source, suppressions.error()};
  if (!project) return *std::move(suppressions);
  auto read = read_project(project->source);
  if (!read) return RefusedInput{project->source, read.error()};
  for (Suppression& one : read->suppressions_of(project->file))
    suppressions->push_back(std::move(one));
  return *std::move(suppressions);
}

Result<Declared, RefusedInput> with_plan(Declared declared, Source plan) {
  if (declared.model.plan.kind) refuse("plan_in", "stands in place of plan, and both are given");
  auto read = read_given_plan(plan.text, declared.load.limits);
  if (!read) return RefusedInput{.source = std::move(plan), .refusal = read.error()};
  declared.model.plan.kind = PlanKind::Given;
  declared.given = std::make_shared<const PlanText>(
      PlanText{.source = std::move(plan), .plan = *std::move(read)});
  return declared;
}

Judgement::Judgement(Input input, Declared declared)
    : input_(std::move(input)), declared_(std::move(declared)) {
  const auto& notes = declared_.model.notes;
  input_.notes.insert(input_.notes.end(), notes.begin(), notes.end());
  place(input_, declared_);
  refused_ = misfit();
  if (refused_) return;
  found_ = found(Diagnostics::kDefaultLimit);
  const auto judge = [this](const std::string& text) { return judge_again(text); };
  if (auto slip = find_slip(found_.result, input_, judge)) slip_ = std::move(slip->finding);
  opinions_ = opinions();
}

Judgement::Judgement(RefusedInput refused) : refused_(std::move(refused)) {
}

Verdict Judgement::verdict() const {
  return refused_ ? Verdict::NoVerdict : found_.result.verdict;
}

std::string Judgement::text() const {
  if (refused_) return to_text(report_of(refused_->source, refused_->refusal));
  const bool all = found_.result.diagnostics.dropped() == 0;
  Found shown = all ? found_ : found(kFindingsInText);
  if (slip_) replace_by_slip(shown.result, *slip_);
  return to_text(report(std::move(shown)));
}

std::string Judgement::json() const {
  if (refused_)
    return to_json(report_of(refused_->source, refused_->refusal), JsonLayout::Indented);
  Found told = found_;
  if (slip_) told.result.diagnostics.put_first(*slip_);
  return to_json(report(std::move(told)), JsonLayout::Indented);
}

Schedule Judgement::minimised(const std::string& rule) const {
  if (refused_) refuse("order", "it cannot be read: " + refused_->refusal.finding.message);
  const std::string_view id = rule.empty() ? first_error(found_.result) : rule_named(rule).id;
  auto least = minimise(input_, id, options(Diagnostics::kDefaultLimit));
  if (!least)
    refuse("rule", fmt::format("{} is not broken, or by the form of the order alone", id));
  return std::move(least->schedule);
}

// The refusal of a given plan that does not fit the order.
std::optional<RefusedInput> Judgement::misfit() const {
  if (!declared_.given) return std::nullopt;
  const CheckOptions declared = options(Diagnostics::kDefaultLimit);
  auto refusal = misfit_of_given_plan(Context(input_, declared));
  if (!refusal) return std::nullopt;
  return RefusedInput{.source = declared_.given->source, .refusal = *std::move(refusal)};
}

CheckOptions Judgement::options(std::size_t findings_per_rule) const {
  CheckOptions options{.findings_per_rule = findings_per_rule,
                       .environment = declared_.model.environment,
                       .groups = declared_.model.groups,
                       .modules = declared_.model.modules,
                       .plan = declared_.model.plan};
  if (declared_.given) options.given = {declared_.given, &declared_.given->plan};
  return options;
}

CheckResult Judgement::checked(const Input& input, std::size_t findings_per_rule) const {
  return check_planned(input, options(findings_per_rule));
}

Judgement::Found Judgement::found(std::size_t findings_per_rule) const {
  const std::size_t kept = declared_.suppressions.empty()
                               ? findings_per_rule
                               : std::max(findings_per_rule, kMostSuppressed);
  Found of{.result = checked(input_, kept), .suppressed = {}};
  keep_cures_that_work(of.result, input_,
                       [this](const std::string& text) { return judge_again(text); });
  of.suppressed = suppress(of.result, input_, declared_.suppressions);
  of.result.diagnostics.narrow(findings_per_rule);
  return of;
}

Report Judgement::report(Found of) const {
  Report report = report_of(input_, std::move(of.result), opinions_);
  report.suppressed = std::move(of.suppressed);
  return report;
}

// An edited text is judged under what was declared of the first; nullopt if that does not fit it.
std::optional<CheckResult> Judgement::judge_again(const std::string& text) const {
  LoadOptions options = declared_.load;
  options.form = notation_of(input_);
  auto again = load({.name = input_.source.name, .text = text}, options);
  if (!again) return std::nullopt;
  try {
    place(*again, declared_);
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
  return checked(*again, Diagnostics::kDefaultLimit);
}

std::vector<Opinion> Judgement::opinions() const {
  std::vector<Opinion> said;
  const auto& asked = declared_.profiles;
  for (const AskedProfile& profile : known_profiles()) {
    const bool wanted = std::find(asked.begin(), asked.end(), profile.name) != asked.end();
    if (!wanted || profile.profile == Profile::Sound) continue;
    said.push_back(opinion_of(
        profile, as_called(profile, input_),
        {.modules = &declared_.model.modules, .environment = declared_.model.environment}));
  }
  return said;
}

}  // namespace capo::python
