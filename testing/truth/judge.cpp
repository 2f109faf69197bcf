#include "testing/truth/judge.h"

#include "core/base/assert.h"
#include "core/report/report.h"
#include "core/rules/check.h"
#include "core/rules/undeclared.h"
#include "core/rules/verify.h"
#include "core/text/number.h"
#include "run/run.h"
#include "run/setup/complete_model.h"
#include "run/setup/replicas.h"
#include "testing/truth/explained.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace capo::testing {

namespace {

// The answers of the two doors: a verdict, and a run or the reason why there was none.
struct Tried {
  CheckResult checked;
  std::optional<run::RunReport> report;
  std::string refusal;
  std::optional<Error> gave_up;           ///< the engine; then nothing was seen
  bool can_be_run = false;                ///< its plan got through a door
  std::optional<CheckResult> undeclared;  ///< under every value of what was not declared
  std::string across;                     ///< the value among these that it was run under
};

std::vector<std::string> rules_of(const CheckResult& result) {
  std::vector<std::string> rules;
  for (const Diagnostic& finding : result.diagnostics.kept()) {
    if (finding.severity == Severity::Error) rules.emplace_back(finding.rule);
  }
  std::sort(rules.begin(), rules.end());
  rules.erase(std::unique(rules.begin(), rules.end()), rules.end());
  return rules;
}

// Copies what a line needs of a result; diagnostics are values.
template <typename Admitted, typename Start>
Tried run_through(Admitted admitted, Start start) {
  Tried tried;
  if (auto* why = std::get_if<NotVerified>(&admitted)) {
    tried.checked = std::move(why->result);
    tried.refusal = std::move(why->reason);
    return tried;
  }
  const auto& plan = std::get<0>(admitted);
  tried.can_be_run = true;
  tried.checked = plan.step().result();
  auto report = start(plan);
  if (report) {
    tried.report = *std::move(report);
  } else {
    const run::RunFailure& why = report.error();
    tried.refusal = why.message;
    if (why.kind == run::RunFailure::Kind::Broken) {
      tried.gave_up =
          Error{.kind = ErrorKind::Environment, .message = why.message, .help = why.help};
    }
  }
  return tried;
}

Tried try_under(const TruthCase& of, const CheckOptions& complete, run::Engine& engine) {
  const run::RunOptions options{.graphs = of.graphs,
                                .replays = of.replays,
                                .seed = of.seed,
                                .sizes = of.sizes,
                                .float64 = of.float64};
  if (of.made == Made::Sound) {
    return run_through(verify(of.input, complete),
                       [&](const VerifiedPlan& plan) { return run::run(engine, plan, options); });
  }
  return run_through(admit_unchecked(of.input, complete), [&](const UncheckedPlan& plan) {
    return run::run_unchecked(engine, plan, options);
  });
}

CheckOptions with_values(CheckOptions options, Communicators layout, TransferMode mode) {
  Environment& environment = options.environment;
  environment.communicators = environment.communicators.value_or(layout);
  environment.transfers = environment.transfers.value_or(mode);
  return options;
}

// The options of the run of an order whose communication is not declared: those drawn for it, or if
// it is rejected the first under which it is, if there are any.
CheckOptions options_of_run(const TruthCase& of, const CheckOptions& complete, Verdict verdict) {
  const CheckOptions drawn = with_values(complete, of.layout, of.mode);
  if (verdict != Verdict::Rejected) return drawn;
  std::vector<CheckOptions> all{drawn};
  for (const Communicators layout :
       {Communicators::PerRank, Communicators::PerPair, Communicators::PerEdge}) {
    for (const TransferMode mode : {TransferMode::Rendezvous, TransferMode::Buffered}) {
      all.push_back(with_values(complete, layout, mode));
    }
  }
  const auto found = std::find_if(all.begin(), all.end(), [&](const CheckOptions& options) {
    return check(of.input, options).verdict == Verdict::Rejected;
  });
  return found == all.end() ? drawn : *found;
}

// A case's copies as one order, as `capo run --replicas` makes them.
TruthCase with_all_replicas(TruthCase of) {
  auto all = run::replicas_of(std::move(of.input), std::move(of.declared), of.replicas);
  CAPO_ASSERT(all.has_value(), "orders that have no replicas are given none");
  of.input = std::move(all->input);
  of.declared = std::move(all->options);
  return of;
}

Tried try_case(const TruthCase& of, run::Engine& engine) {
  const CheckOptions complete = run::complete_model(of.declared, of.input.schedule).options;
  if (!has_undeclared(of.input.schedule, complete.environment)) {
    return try_under(of, complete, engine);
  }
  CheckResult undeclared = check(of.input, complete);
  const CheckOptions options = options_of_run(of, complete, undeclared.verdict);
  Tried tried = try_under(of, options, engine);
  tried.undeclared = std::move(undeclared);
  tried.across = fmt::format("{}, {}", name_of(*options.environment.communicators),
                             name_of(*options.environment.transfers));
  return tried;
}

struct Opinion {
  Came came;
  std::string reason = {};
};

Opinion disagrees(std::string why) {
  return {.came = Came::Disagrees, .reason = std::move(why)};
}

// Why nothing of it can be seen, if that is so of every rule that it breaks.
std::optional<std::string> explanation(const std::vector<std::string>& rules) {
  std::string words;
  for (const std::string& rule : rules) {
    const std::string_view why = why_not_shown(rule);
    if (why.empty()) return std::nullopt;
    words += fmt::format("{}{}: {}", words.empty() ? "" : "; ", rule, why);
  }
  return words;
}

// A wrong run is reported before a wrong verdict, since its order can be made smaller.
Opinion opinion_of_accepted(const TruthCase& of, const Tried& tried) {
  if (!tried.report) return disagrees("accepted, but: " + tried.refusal);
  const run::RunReport& report = *tried.report;
  if (!report.bit_equal) return disagrees("accepted, but a gradient is not equal to eager's");
  if (!report.within_bounds) return disagrees("accepted, but eager execution is not float64's");
  if (report.victims != report.predicted) return disagrees("accepted, but there are victims");
  if (report.bytes.planned != report.bytes.allocated) return disagrees("other bytes than planned");
  if (of.made == Made::Faulty) return disagrees("accepted, though it was put at fault");
  return {.came = Came::Right};
}

bool holds(const run::Victims& victims, const FoundHazard& hazard) {
  const auto& of_kind = hazard.kind == HazardKind::StaticInput  ? victims.static_input
                        : hazard.kind == HazardKind::GradOutput ? victims.grad_output
                        : hazard.kind == HazardKind::P2pWindow  ? victims.grad_input
                                                                : victims.other;
  const Buffer& victim = hazard.victim;
  return of_kind.contains({victim.rank, victim.chunk, victim.microbatch});
}

bool any(const run::Victims& victims) {
  return !victims.static_input.empty() || !victims.grad_output.empty() ||
         !victims.grad_input.empty() || !victims.other.empty();
}

// Either of two readers that race for memory may be hurt, depending on the linear extension that
// runs. If there are races, a gradient has to be wrong, and every reader that is hurt in all
// extensions has to be seen. If chunks are wired to each other, the hurt reader depends on the
// races before, and there has to be one.
bool as_predicted(const run::RunReport& report, const CheckResult& checked, Topology topology) {
  if (report.victims == report.predicted) return true;
  if (!checked.plan || report.bit_equal) return false;
  const auto& hazards = checked.plan->hazards;
  const bool wired = topology != Topology::Independent;
  const bool races = std::any_of(hazards.begin(), hazards.end(),
                                 [](const FoundHazard& hazard) { return hazard.race; });
  if (races && wired) return any(report.victims);
  return races && std::all_of(hazards.begin(), hazards.end(), [&](const FoundHazard& hazard) {
           return hazard.race || holds(report.victims, hazard);
         });
}

// Whether the plan may overwrite choices of a router: they are addresses, and nobody follows those.
bool spoils_choices(const TruthCase& of, const CheckResult& checked) {
  if (!checked.plan) return false;
  const auto& hazards = checked.plan->hazards;
  return std::any_of(hazards.begin(), hazards.end(), [&](const FoundHazard& hazard) {
    const Buffer& victim = hazard.victim;
    const Module* module = of.declared.modules.of(victim.rank, victim.chunk, victim.layer);
    return victim.kind == BufferKind::Activations && module != nullptr && has_router(*module);
  });
}

Opinion opinion_of_rejected(const TruthCase& of, const Tried& tried,
                            const std::vector<std::string>& rules) {
  if (of.made == Made::Sound) return disagrees("rejected, though it was made to be sound");
  if (of.made == Made::Faulty && std::find(rules.begin(), rules.end(), of.rule) == rules.end()) {
    return disagrees(fmt::format("rejected, but not by {}", of.rule));
  }
  const auto explained = explanation(rules);
  if (!tried.report) {
    if (explained) return {.came = Came::Explained, .reason = *explained};
    // C06: a layer that hands no gradient back leaves those in front of it nothing to run on.
    const bool no_gradient = std::find(rules.begin(), rules.end(), "C06") != rules.end();
    const bool refused = !tried.can_be_run || spoils_choices(of, tried.checked);
    if (refused || no_gradient) return {.came = Came::NotRun, .reason = tried.refusal};
    return disagrees("rejected, but not run: " + tried.refusal);
  }
  const run::RunReport& report = *tried.report;
  if (!report.within_bounds) return disagrees("eager execution is not float64's");
  if (!as_predicted(report, tried.checked, of.input.schedule.topology))
    return disagrees("other victims than were predicted");
  if (!report.bit_equal) return {.came = Came::Seen};
  if (explained) return {.came = Came::Explained, .reason = *explained};
  return disagrees("rejected, but every gradient is right");
}

// A rejection has to be one under some value of what was not declared, and an acceptance one under
// each.
Opinion opinion_of(const TruthCase& of, const Tried& tried, Verdict verdict) {
  if (tried.checked.verdict != verdict) {
    return disagrees(fmt::format("{}, but {} under {}", capo::name_of(verdict),
                                 capo::name_of(tried.checked.verdict), tried.across));
  }
  return verdict == Verdict::Accepted ? opinion_of_accepted(of, tried)
                                      : opinion_of_rejected(of, tried, rules_of(tried.checked));
}

// To three digits, so that lines are short.
double rounded(double error) {
  return read_number(fmt::format("{:.3g}", error))->value;
}

// All that is known before anything is judged.
TruthLine line_before(const TruthCase& of, const run::Engine& engine) {
  return {.number = of.number,
          .order = of.words,
          .module = of.module,
          .plan = std::string(name_of(of.declared.plan.kind.value_or(PlanKind::Safe))),
          .graphs = of.graphs == Granularity::PerStep ? "per-step" : "per-action",
          .replicas = of.replicas,
          .fault = of.fault,
          .verdict = std::string(capo::name_of(Verdict::NoVerdict)),
          .engine = std::string(engine.name())};
}

TruthLine line_of(const TruthCase& of, const Tried& tried, const run::Engine& engine) {
  TruthLine line = line_before(of, engine);
  const CheckResult& judged = tried.undeclared ? *tried.undeclared : tried.checked;
  line.verdict = capo::name_of(judged.verdict);
  line.rules = rules_of(judged);
  line.across = tried.across;
  Opinion opinion = opinion_of(of, tried, judged.verdict);
  line.came = opinion.came;
  line.reason = std::move(opinion.reason);
  if (!tried.report) return line;
  const run::RunReport& report = *tried.report;
  line.ran = true;
  line.bit_equal = report.bit_equal;
  line.within_bounds = report.within_bounds;
  line.float64 = rounded(report.worst_relative_error);
  for (const run::BeyondBound& tensor : report.beyond) line.beyond.push_back(tensor.name);
  line.other_ways = report.other_ways;
  line.gradients = report.parameters.size() + report.input_gradients.size();
  line.replays = report.replays;
  line.victims = report.victims;
  line.predicted = report.predicted;
  return line;
}

}  // namespace

Result<TruthLine, Error> judge_truth(const TruthCase& of, run::Engine& engine) try {
  const TruthCase all = with_all_replicas(of);
  const Tried tried = try_case(all, engine);
  if (tried.gave_up) return *tried.gave_up;
  return line_of(all, tried, engine);
} catch (const InternalError& broken) {
  TruthLine line = line_before(of, engine);
  line.came = Came::Disagrees;
  line.reason = broken.what();
  return line;
}

Result<TruthLine, Error> judge_truth(const TruthCase& of, run::Engine& engine, run::Engine& host) {
  auto here = judge_truth(of, engine);
  if (!here) return here;
  auto on_host = judge_truth(of, host);
  if (!on_host) return on_host;
  TruthLine line = *std::move(here);
  const TruthLine& there = *on_host;
  if (there.ran) line.host_victims = there.victims;
  if (line.came == Came::Disagrees) return line;
  const bool same = line.came == there.came && line.bit_equal == there.bit_equal &&
                    line.victims == there.victims && line.ran == there.ran;
  if (same) return line;
  line.came = Came::Disagrees;
  line.reason = fmt::format("on {} it came otherwise: {}", there.engine,
                            there.came == Came::Disagrees ? there.reason : name_of(there.came));
  return line;
}

}  // namespace capo::testing
