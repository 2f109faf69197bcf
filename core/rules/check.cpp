#include <capo/core/rules/check.h>

#include <capo/core/base/assert.h>
#include <capo/core/rules/buffers/hazard_words.h>
#include <capo/core/rules/context.h>
#include <capo/core/rules/plan_view.h>
#include <capo/core/rules/wiring.h>

#include <fmt/format.h>

#include <algorithm>

namespace capo {

namespace {

// What of the passes before was without an error.
struct Ground {
  bool entries = true;
  bool orders = true;  // every pass that looks at one rank or at the placement
  bool all = true;     // every pass up to the transfers
};

// What a pass asks of the passes before it.
bool has_ground(Pass pass, const Ground& ground) {
  switch (pass) {
    case Pass::Reading:
    case Pass::Entries:
      return true;
    case Pass::Counts:
    case Pass::Order:
    case Pass::Placement:
      // Nothing else depends on anything, since each rule leaves alone what another one reports.
      return ground.entries;
    case Pass::Stages:
    case Pass::Routing:
      return ground.orders;
    case Pass::Transfers:
    case Pass::Buffers:
      return ground.all;
    case Pass::Modules:
      return ground.entries;
    case Pass::Gradients:
      return ground.orders;
  }
  return true;
}

bool has_reductions(const Schedule& schedule) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [](const RankOrder& rank) {
    return std::any_of(rank.order.begin(), rank.order.end(),
                       [](const Entry& entry) { return entry.kind == Kind::ReduceGradient; });
  });
}

// Whether there is anything for the pass to look at.
bool applies(Pass pass, const Context& context) {
  if (pass < Pass::Stages) return true;
  if (pass == Pass::Gradients) {
    return !context.options().modules.layers.empty() || has_reductions(context.schedule());
  }
  if (pass == Pass::Buffers) return context.plan_wanted();
  if (pass == Pass::Modules) return !context.options().modules.layers.empty();
  return std::any_of(context.wirings().begin(), context.wirings().end(), [&](const auto& wiring) {
    if (pass == Pass::Routing) return wiring->by_megatron();
    return pass == Pass::Transfers ? wiring->transfers_matter() : wiring->map().wired();
  });
}

// Asked only after a pass of transfers that found no ground missing. Of a transfer that is there
// twice nobody can say which of the two the other end meets.
std::optional<bool> finishes(const Context& context) {
  bool all = true;
  for (const auto& wiring : context.wirings()) {
    if (!wiring->transfers_matter()) continue;
    const auto& faults = wiring->transfers().faults;
    const bool twice = std::any_of(faults.begin(), faults.end(), [](const TransferFault& fault) {
      return fault.kind == TransferFault::Kind::Repeated;
    });
    if (twice) return std::nullopt;
    all = all && wiring->execution().finishes();
  }
  return all;
}

bool too_large(const Context& context) {
  return BufferTable::count(context.schedule(), context.microbatches()) >
         context.options().plan.max_buffers;
}

Diagnostic too_large_finding(const PlanOptions& plan) {
  return {.rule = "I02",
          .family = Family::Input,
          .message = fmt::format("the plan has more than {} buffers", plan.max_buffers),
          .help = {.text = "raise the limit with --max-buffers", .edits = {}}};
}

PlanResult plan_result(const Context& context, const PlanView& view) {
  PlanResult result{.kind = view.kind(),
                    .declared = view.declared(),
                    .sized = view.table().sized(),
                    .ranks = view.plan().ranks,
                    .hazards = {}};
  for (const JudgedHazard& judged : view.hazards()) {
    const Hazard& hazard = judged.hazard;
    result.hazards.push_back(
        {.kind = judged.kind,
         .victim = hazard.victim,
         .writer = rules::site_reference(context, *judged.wiring, hazard.writer),
         .reader = rules::site_reference(context, *judged.wiring, hazard.reader),
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

// Whether all that is wrong with the orders is that actions run on a rank that does not hold their
// stage. They can still be executed on paper: such an action makes nothing that another could use.
bool only_misplaced(const Diagnostics& diagnostics) {
  const auto& kept = diagnostics.kept();
  return !kept.empty() && diagnostics.dropped() == 0 &&
         std::all_of(kept.begin(), kept.end(), [](const Diagnostic& finding) {
           return finding.rule == "P01" || finding.rule == "S21";
         });
}

bool strays(const Schedule& schedule) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(),
                     [](const RankOrder& rank) { return rank.strays > 0; });
}

}  // namespace

bool orders_are_clean(const Context& context) {
  Diagnostics diagnostics(1);
  bool entries = true;
  for (const Rule& rule : catalogue()) {
    if (rule.check == nullptr || rule.pass > Pass::Placement) continue;
    if (rule.pass > Pass::Entries) entries = entries && diagnostics.errors() == 0;
    if (rule.pass > Pass::Entries && !entries) return false;
    rule.check(context, diagnostics);
    if (rule.pass > Pass::Entries && diagnostics.errors() > 0) return false;
  }
  return diagnostics.errors() == 0;
}

CheckResult check(const Input& input, const CheckOptions& options) {
  return check(Context(input, options));
}

CheckResult check(const Context& context) {
  const Input& input = context.input();
  const CheckOptions& options = context.options();
  CheckResult result{.diagnostics = Diagnostics(options.findings_per_rule)};
  result.microbatches = context.microbatches();
  result.environment = options.environment;
  result.groups = options.groups.size();
  result.plan_declared = options.plan.kind;
  if (!options.modules.layers.empty()) {
    for (const Module& module : options.modules.list) result.modules.push_back(module.name);
  }
  Ground ground;
  bool asked = false;    // whether the schedule finishes
  bool planned = false;  // whether memory was judged
  bool limited = false;  // whether the plan would be larger than allowed
  Pass current = Pass::Reading;
  for (const Rule& rule : catalogue()) {
    if (rule.check == nullptr) continue;
    if (rule.pass != current) {
      if (current <= Pass::Transfers) ground.all = result.diagnostics.errors() == 0;
      if (current == Pass::Entries) ground.entries = ground.all;
      if (current == Pass::Placement) ground.orders = ground.all;
      current = rule.pass;
    }
    if (!applies(rule.pass, context)) continue;
    if (rule.pass == Pass::Buffers && !limited && too_large(context)) {
      limited = true;
      if (options.plan.kind) result.diagnostics.add(too_large_finding(options.plan));
    }
    if (has_ground(rule.pass, ground) && !(limited && rule.pass == Pass::Buffers)) {
      rule.check(context, result.diagnostics);
      planned = planned || rule.pass == Pass::Buffers;
      asked = asked || rule.pass == Pass::Transfers;
    } else if (rule.pass == Pass::Buffers && !options.plan.kind) {
      continue;  // nobody asked for it
    } else if (std::find(result.skipped.begin(), result.skipped.end(), rule.pass) ==
               result.skipped.end()) {
      result.skipped.push_back(rule.pass);
    }
  }
  result.orders_clean = ground.orders;
  if (planned) result.plan = plan_result(context, *context.plan_view());
  const bool misplaced = strays(input.schedule) && only_misplaced(result.diagnostics) &&
                         context.wirings().front()->executable();
  if (asked || misplaced) result.finishes = finishes(context);
  // Accepting what cannot be executed would be the worst bug that capo could have.
  CAPO_ASSERT(result.finishes != false || result.diagnostics.errors() > 0,
              "what does not finish has a finding");
  CAPO_ASSERT(!ground.orders || result.diagnostics.errors() > 0 || executable(context),
              "what cannot be executed has a finding");
  result.diagnostics.sort();
  result.verdict = result.diagnostics.errors() == 0 ? Verdict::Accepted : Verdict::Rejected;
  // What is wrong without the plan is wrong with it; but nothing is right that was not looked at.
  if (limited && options.plan.kind && result.diagnostics.errors() == 1) {
    result.verdict = Verdict::NoVerdict;
  }
  return result;
}

}  // namespace capo
