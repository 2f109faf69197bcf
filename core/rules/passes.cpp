#include "core/rules/passes.h"

#include "core/base/assert.h"
#include "core/base/index.h"
#include "core/diag/diagnostics.h"
#include "core/rules/context.h"
#include "core/rules/findings.h"
#include "core/rules/plan_view.h"
#include "core/rules/wiring.h"
#include "core/text/refusal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace capo {

namespace {

constexpr bool is_reduction(Kind kind) {
  return kind == Kind::ReduceGradient || kind == Kind::WaitReduceGradient;
}

// Whether chunks or ranks have anything to do with each other.
bool related(const Context& context) {
  const CheckOptions& options = context.options();
  return context.schedule().topology != Topology::Independent || !options.groups.empty() ||
         options.environment.has_weight_stream();
}

bool any_wiring(const Context& context, bool (*concerns)(const Wiring&)) {
  return related(context) &&
         std::any_of(context.wirings().begin(), context.wirings().end(),
                     [concerns](const auto& wiring) { return concerns(*wiring); });
}

bool always(const Context& /*context*/) {
  return true;
}

bool stages_are_wired(const Context& context) {
  return any_wiring(context, [](const Wiring& wiring) { return wiring.map().wired(); });
}

bool megatron_calls(const Context& context) {
  return any_wiring(context, [](const Wiring& wiring) { return wiring.by_megatron(); });
}

bool transfers_matter(const Context& context) {
  return any_wiring(context, [](const Wiring& wiring) { return wiring.transfers_matter(); });
}

bool modules_are_declared(const Context& context) {
  return !context.options().modules.layers.empty();
}

bool gradients_are_told(const Context& context) {
  return modules_are_declared(context) || Kinds(context.schedule()).any<is_reduction>();
}

bool graphs_are_reset_or_reload(const Context& context) {
  return has_resets(context.schedule()) || context.options().plan.paged_stash;
}

bool plan_is_wanted(const Context& context) {
  return context.plan_wanted();
}

struct PassFacts {
  Pass pass;
  std::string_view name;
  Passes::Ground needs;
  bool (*applies)(const Context&);  ///< whether there is anything for the pass to look at
};

// Counts, Order and Placement are independent of each other, since no rule reports what another
// one does.
constexpr std::array kPasses{
    PassFacts{Pass::Reading, "reading", Passes::Ground::None, always},
    PassFacts{Pass::Entries, "entries", Passes::Ground::None, always},
    PassFacts{Pass::Counts, "counts", Passes::Ground::Entries, always},
    PassFacts{Pass::Order, "order", Passes::Ground::Entries, always},
    PassFacts{Pass::Placement, "placement", Passes::Ground::Entries, always},
    PassFacts{Pass::Stages, "stages", Passes::Ground::Orders, stages_are_wired},
    PassFacts{Pass::Routing, "routing", Passes::Ground::Orders, megatron_calls},
    PassFacts{Pass::Transfers, "transfers", Passes::Ground::All, transfers_matter},
    PassFacts{Pass::Modules, "modules", Passes::Ground::Entries, modules_are_declared},
    PassFacts{Pass::Gradients, "gradients", Passes::Ground::Orders, gradients_are_told},
    PassFacts{Pass::Buffers, "buffers", Passes::Ground::All, plan_is_wanted},
    PassFacts{Pass::Resets, "resets", Passes::Ground::Orders, graphs_are_reset_or_reload},
};

constexpr bool in_the_order_of_the_enum() {
  for (std::size_t at = 0; at < kPasses.size(); ++at) {
    if (as_index(kPasses[at].pass) != at) return false;
  }
  return true;
}
static_assert(in_the_order_of_the_enum());

const PassFacts& facts_of(Pass pass) {
  return kPasses[as_index(pass)];
}

using RulesByPass = std::array<std::vector<Rule>, kPasses.size()>;

RulesByPass rules_by_pass() {
  RulesByPass rules;
  for (const Rule& rule : catalogue()) {
    if (rule.check != nullptr) rules[as_index(rule.pass)].push_back(rule);
  }
  return rules;
}

bool too_large(const Context& context) {
  const PlanOptions& plan = context.options().plan;
  const bool asked_for = PlanView::asked_for(context.input(), context.options());
  return BufferTable::count(context.schedule(), context.microbatches(), context.options().modules) >
         (asked_for ? plan.max_buffers : plan.max_unasked_buffers);
}

Diagnostic beyond_addresses_finding(std::int32_t rank) {
  return {
      .rule = kLimitRule,
      .family = Family::Input,
      .message = fmt::format(
          "the buffers and weights of rank {} take more than {} PiB, beyond which plans have no "
          "addresses",
          rank, (std::int64_t{1} << kAddressBits) >> 50),
      .help = {.text = "declare smaller sizes: tokens, hidden, ffn or bytes", .edits = {}}};
}

// Its place is in another text than the orders'.
Diagnostic misfit_finding(const Refusal& misfit) {
  return {.rule = misfit.finding.rule,
          .family = misfit.finding.family,
          .message = "the given plan does not fit the orders: " + misfit.finding.message};
}

Diagnostic too_large_finding(const PlanOptions& plan) {
  return {.rule = kLimitRule,
          .family = Family::Input,
          .message = fmt::format("the plan has more than {} buffers", plan.max_buffers),
          .help = {.text = "raise the limit with --max-buffers", .edits = {}}};
}

}  // namespace

void Passes::run() {
  static const RulesByPass rules = rules_by_pass();
  for (const PassFacts& facts : kPasses) {
    const bool known = facts.pass <= Pass::Placement && context_.orders_known_clean();
    if (begin(facts.pass) && !known) {
      for (const Rule& rule : rules[as_index(facts.pass)]) {
        Findings findings(rule, out_);
        rule.check(context_, findings);
      }
    }
    end(facts.pass);
  }
}

Verdict Passes::verdict() const {
  // An error of the orders is one under every plan. An order whose plan nobody looked at is not
  // accepted, and not rejected for that alone.
  if (refused_ && out_.errors() == 1) return Verdict::NoVerdict;
  return out_.errors() == 0 ? Verdict::Accepted : Verdict::Rejected;
}

bool Passes::left_unasked() const {
  return limited_ && !refused_ && has_ground(Pass::Buffers);
}

bool Passes::has_ground(Pass pass) const {
  return clean(facts_of(pass).needs);
}

// Whether the rules of the pass are to run.
bool Passes::begin(Pass pass) {
  const auto at = as_index(pass);
  const bool planned = pass == Pass::Buffers;
  const bool declared = !planned || context_.options().plan.kind.has_value();
  // A caller that wants the first error alone needs neither warnings nor what was skipped.
  if (out_.only_first() && (planned ? !declared : !has_ground(pass))) return false;
  if (!facts_of(pass).applies(context_)) return false;
  const bool ground = has_ground(pass);
  if (planned && too_large(context_)) {
    limited_ = true;
    if (declared) refuse_plan(too_large_finding(context_.options().plan));
  } else if (planned && ground) {
    const PlanView& view = context_.plan_view();
    if (const auto rank = view.table().beyond_addresses())
      refuse_plan(beyond_addresses_finding(*rank));
    if (view.misfit() != nullptr) refuse_plan(misfit_finding(*view.misfit()));
  }
  if (ground && !(planned && limited_)) {
    ran_[at] = true;
    return true;
  }
  skipped_[at] = declared;
  return false;
}

void Passes::refuse_plan(Diagnostic finding) {
  limited_ = refused_ = true;
  out_.add(std::move(finding));
}

void Passes::end(Pass pass) {
  const bool clean = out_.errors() == 0;
  const auto note = [&](Ground ground) { clean_[as_index(ground)] = clean; };
  if (pass == Pass::Entries) note(Ground::Entries);
  if (pass == Pass::Placement) {
    note(Ground::Orders);
    if (out_.empty()) context_.note_clean_orders();
  }
  if (pass <= Pass::Transfers) note(Ground::All);
}

std::vector<Pass> Passes::skipped() const {
  std::vector<Pass> passes;
  for (const PassFacts& facts : kPasses) {
    if (skipped_[as_index(facts.pass)]) passes.push_back(facts.pass);
  }
  return passes;
}

std::string_view name_of(Pass pass) {
  return facts_of(pass).name;
}

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::Accepted:
      return "accepted";
    case Verdict::Rejected:
      return "rejected";
    case Verdict::NoVerdict:
      return "no-verdict";
  }
  CAPO_UNREACHABLE();
}

}  // namespace capo
