#include "core/rules/stated.h"

#include "core/base/assert.h"
#include "core/rules/context.h"
#include "core/rules/hazard_words.h"
#include "core/rules/passes.h"
#include "core/rules/plan_view.h"
#include "core/rules/wiring.h"

#include <algorithm>
#include <cstdint>

namespace capo {

namespace {

// This is asked only after a pass of transfers that had its ground. If a transfer is there twice,
// the answer is unknown, since the other end may meet either of the two.
std::optional<bool> finishes(const Context& context) {
  bool all = true;
  for (const auto& wiring : context.wirings()) {
    if (!wiring->transfers_in_doubt()) continue;
    const auto& faults = wiring->transfers().faults;
    const bool twice = std::any_of(faults.begin(), faults.end(), [](const TransferFault& fault) {
      return fault.kind == TransferFault::Kind::Repeated;
    });
    if (twice) return std::nullopt;
    all = all && wiring->finishes();
  }
  return all;
}

PlanResult plan_result(const Context& context, const PlanView& view) {
  PlanResult result{.kind = view.kind(),
                    .declared = view.declared(),
                    .sized = view.table().sized(),
                    .ranks = view.memory(),
                    .hazards = {}};
  for (const JudgedHazard& judged : view.hazards()) {
    const Hazard& hazard = judged.hazard;
    result.hazards.push_back(
        {.kind = judged.kind,
         .victim = hazard.victim,
         .writer = rules::memory_user_reference(context, *judged.wiring, hazard.writer),
         .reader = rules::memory_user_reference(context, *judged.wiring, hazard.reader),
         .possible = judged.possible,
         .race = hazard.race,
         .by_replay = judged.by_replay});
  }
  return result;
}

bool executable(const Context& context) {
  return std::all_of(context.wirings().begin(), context.wirings().end(),
                     [](const auto& wiring) { return wiring->executable(); });
}

// Whether the orders are wrong only in that actions run on a rank that does not hold their stage.
// They can still be executed on paper: such an action makes no output that another could use.
bool only_misplaced(const Diagnostics& diagnostics) {
  const auto& kept = diagnostics.kept();
  return diagnostics.dropped() == 0 &&
         std::all_of(kept.begin(), kept.end(), [](const Diagnostic& finding) {
           return find_rule(finding.rule)->leaves_executable;
         });
}

bool strays(const Schedule& schedule) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(),
                     [](const RankOrder& rank) { return rank.strays > 0; });
}

enum class Describe : std::uint8_t { Findings, PlanToo };

CheckResult judged(const Context& context, std::size_t findings_per_rule, Describe what) {
  const Input& input = context.input();
  const CheckOptions& options = context.options();
  CheckResult result{.diagnostics = Diagnostics(findings_per_rule)};
  result.microbatches = context.microbatches();
  result.environment = environment_of(input.schedule, options.environment);
  result.groups = options.groups.size();
  result.plan_declared = options.plan.kind;
  if (!options.modules.layers.empty()) {
    for (const Module& module : options.modules.list) result.modules.push_back(module.name);
  }
  Passes passes(context, result.diagnostics);
  passes.run();
  result.skipped = passes.skipped();
  result.orders_clean = passes.orders_clean();
  if (what == Describe::PlanToo && passes.ran(Pass::Buffers))
    result.plan = plan_result(context, context.plan_view());
  result.left_unasked = passes.left_unasked();
  const bool misplaced = strays(input.schedule) && only_misplaced(result.diagnostics) &&
                         context.wirings().front()->executable();
  if (passes.ran(Pass::Transfers) || misplaced) result.finishes = finishes(context);
  // Accepting what cannot be executed would be the worst bug that capo could have.
  CAPO_ASSERT(result.finishes != false || result.diagnostics.errors() > 0,
              "what does not finish has a finding");
  CAPO_ASSERT(!result.orders_clean || result.diagnostics.errors() > 0 || executable(context),
              "what cannot be executed has a finding");
  result.diagnostics.sort();
  result.verdict = passes.verdict();
  result.transfers_judged = passes.ran(Pass::Transfers);
  return result;
}

}  // namespace

CheckResult check_stated(const Context& context, std::size_t findings_per_rule) {
  return judged(context, findings_per_rule, Describe::PlanToo);
}

CheckResult findings_stated(const Context& context, std::size_t findings_per_rule) {
  return judged(context, findings_per_rule, Describe::Findings);
}

}  // namespace capo
