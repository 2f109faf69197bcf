#include "core/rules/passes.h"

#include "core/base/assert.h"
#include "core/diag/diagnostics.h"
#include "core/rules/context.h"
#include "core/rules/plan_view.h"
#include "core/rules/wiring.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace capo {

namespace {

bool has_reductions(const Schedule& schedule) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [](const RankOrder& rank) {
    return std::any_of(rank.order.begin(), rank.order.end(),
                       [](const Entry& entry) { return entry.kind == Kind::ReduceGradient; });
  });
}

// Whether chunks or ranks have anything to do with each other.
bool related(const Context& context) {
  const CheckOptions& options = context.options();
  return context.schedule().topology != Topology::Independent || !options.groups.empty() ||
         options.environment.weight_stream;
}

// Whether there is anything for the pass to look at.
bool applies(Pass pass, const Context& context) {
  if (pass < Pass::Stages) return true;
  if (pass == Pass::Gradients) {
    return !context.options().modules.layers.empty() || has_reductions(context.schedule());
  }
  if (pass == Pass::Buffers) return context.plan_wanted();
  if (pass == Pass::Modules) return !context.options().modules.layers.empty();
  if (!related(context)) return false;
  return std::any_of(context.wirings().begin(), context.wirings().end(), [&](const auto& wiring) {
    if (pass == Pass::Routing) return wiring->by_megatron();
    return pass == Pass::Transfers ? wiring->transfers_matter() : wiring->map().wired();
  });
}

bool too_large(const Context& context) {
  const PlanOptions& plan = context.options().plan;
  const bool asked_for = PlanView::asked_for(context.input(), context.options());
  return BufferTable::count(context.schedule(), context.microbatches()) >
         (asked_for ? plan.max_buffers : plan.max_unasked_buffers);
}

Diagnostic beyond_addresses_finding(std::int32_t rank) {
  return {
      .rule = "I02",
      .family = Family::Input,
      .message = fmt::format(
          "the buffers and weights of rank {} take more than {} PiB, beyond which plans have no "
          "addresses",
          rank, (std::int64_t{1} << kAddressBits) >> 50),
      .help = {.text = "declare smaller sizes: tokens, hidden, ffn or bytes", .edits = {}}};
}

Diagnostic too_large_finding(const PlanOptions& plan) {
  return {.rule = "I02",
          .family = Family::Input,
          .message = fmt::format("the plan has more than {} buffers", plan.max_buffers),
          .help = {.text = "raise the limit with --max-buffers", .edits = {}}};
}

}  // namespace

void Passes::run() {
  Pass current = Pass::Reading;
  bool runs = false;
  for (const Rule& rule : catalogue()) {
    if (rule.check == nullptr) continue;
    if (rule.pass != current) {
      end(current);
      current = rule.pass;
      runs = begin(current);
    }
    if (runs) rule.check(context_, out_);
  }
}

Verdict Passes::verdict() const {
  // What is wrong without the plan is wrong with it; but nothing is right that was not looked at.
  if (refused_ && out_.errors() == 1) return Verdict::NoVerdict;
  return out_.errors() == 0 ? Verdict::Accepted : Verdict::Rejected;
}

bool Passes::left_unasked() const {
  return limited_ && !refused_ && has_ground(Pass::Buffers);
}

// What a pass asks of the passes before it.
bool Passes::has_ground(Pass pass) const {
  switch (pass) {
    case Pass::Reading:
    case Pass::Entries:
      return true;
    case Pass::Counts:
    case Pass::Order:
    case Pass::Placement:
      // Nothing else depends on anything, since each rule leaves alone what another one reports.
      return ground_.entries;
    case Pass::Stages:
    case Pass::Routing:
      return ground_.orders;
    case Pass::Transfers:
    case Pass::Buffers:
      return ground_.all;
    case Pass::Modules:
      return ground_.entries;
    case Pass::Gradients:
      return ground_.orders;
  }
  CAPO_UNREACHABLE();
}

// Whether the rules of the pass are to run.
bool Passes::begin(Pass pass) {
  const auto at = static_cast<std::size_t>(pass);
  const bool planned = pass == Pass::Buffers;
  const bool declared = !planned || context_.options().plan.kind.has_value();
  // Who wants the first error alone asks neither for warnings nor for what was skipped.
  if (out_.only_first() && (planned ? !declared : !has_ground(pass))) return false;
  if (!applies(pass, context_)) return false;
  const bool ground = has_ground(pass);
  if (planned && too_large(context_)) {
    limited_ = true;
    if (declared) refuse(too_large_finding(context_.options().plan));
  } else if (planned && ground) {
    const auto rank = context_.plan_view().table().beyond_addresses();
    if (rank) refuse(beyond_addresses_finding(*rank));
  }
  if (ground && !(planned && limited_)) {
    ran_[at] = true;
    return true;
  }
  skipped_[at] = declared;
  return false;
}

void Passes::refuse(Diagnostic finding) {
  limited_ = refused_ = true;
  out_.add(std::move(finding));
}

void Passes::end(Pass pass) {
  if (pass <= Pass::Transfers) ground_.all = out_.errors() == 0;
  if (pass == Pass::Entries) ground_.entries = ground_.all;
  if (pass == Pass::Placement) ground_.orders = ground_.all;
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
