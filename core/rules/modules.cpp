#include "core/rules/modules.h"

#include "core/base/index.h"
#include "core/rules/words.h"

#include <algorithm>
#include <limits>

namespace capo::rules {

namespace {

// A warning names the condition under which it holds.
std::string_view te_condition(Severity severity) {
  return severity == Severity::Error
             ? ""
             : "if these layers are captured as TransformerEngine captures them, ";
}

std::optional<std::int64_t> stated_layers(const RankOrder& rank, std::int32_t chunk) {
  const auto& stated = rank.layers.values;
  const std::size_t at = rank.layers.form == Layers::Form::Count ? 0 : ChunkId(chunk).index();
  return at < stated.size() ? std::optional(stated[at]) : std::nullopt;
}

constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

// The positions of a chunk's first entries; kNowhere if it has none.
struct Firsts {
  std::size_t forward = kNowhere;
  std::size_t backward = kNowhere;
  std::size_t weight = kNowhere;

  [[nodiscard]] std::size_t shown_at(ShowsAt shows_at) const {
    if (shows_at == ShowsAt::WeightGradient && weight != kNowhere) return weight;
    if (shows_at != ShowsAt::Forward && backward != kNowhere) return backward;
    return std::min({forward, backward, weight});
  }
};

std::vector<Firsts> firsts_of(const OrderView& order) {
  std::vector<Firsts> firsts(order.tally.size());
  for (std::size_t at = 0; at < order.entries.size(); ++at) {
    const Entry& entry = order.entries[at];
    if (!is_compute(entry.kind) || !order.knows(entry.chunk)) continue;
    Firsts& of = firsts[entry.chunk.index()];
    std::size_t& first = entry.kind == Kind::Forward          ? of.forward
                         : entry.kind == Kind::BackwardWeight ? of.weight
                                                              : of.backward;
    first = std::min(first, at);
  }
  return firsts;
}

}  // namespace

std::optional<Severity> captured_by_te(const Context& context) {
  const std::optional<PlanKind> plan = context.options().plan.kind;
  if (plan == PlanKind::Safe) return std::nullopt;
  return plan && is_a_frameworks(*plan) ? Severity::Error : Severity::Warning;
}

std::vector<std::size_t> ModuleUse::entries(std::initializer_list<Kind> kinds,
                                            std::size_t limit) const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < order->entries.size() && found.size() < limit; ++i) {
    const Entry& entry = order->entries[i];
    if (entry.chunk != chunk) continue;
    if (std::find(kinds.begin(), kinds.end(), entry.kind) != kinds.end()) found.push_back(i);
  }
  return found;
}

std::int32_t distinct_layers(const Context& context, std::int32_t rank, std::int32_t chunk) {
  const auto declared =
      static_cast<std::int64_t>(context.options().modules.layers_told_apart(rank, chunk));
  const auto& holder = context.schedule().ranks[RankId(rank).index()];
  const std::int64_t stated = stated_layers(holder, chunk).value_or(declared);
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(stated, 0, declared));
}

const Module* module_at_fault(const Context& context, std::int32_t rank, std::int32_t chunk,
                              const std::function<bool(const Module&)>& at_fault) {
  const std::int32_t layers = distinct_layers(context, rank, chunk);
  for (std::int32_t layer = 0; layer < layers; ++layer) {
    const Module* module = context.module_of(rank, chunk, layer);
    if (at_fault(*module)) return module;
  }
  return nullptr;
}

std::vector<ModuleUse> modules_at_fault(const Context& context, ShowsAt shows_at,
                                        const std::function<bool(const Module&)>& at_fault) {
  const std::vector<Module>& list = context.options().modules.list;
  std::vector<bool> wanted(list.size());
  std::transform(list.begin(), list.end(), wanted.begin(), std::cref(at_fault));
  auto left = std::count(wanted.begin(), wanted.end(), true);

  std::vector<ModuleUse> uses;
  for (const OrderView& order : context.orders()) {
    if (left == 0) break;
    const std::vector<Firsts> firsts = firsts_of(order);
    for (std::int32_t chunk = 1; left > 0 && chunk <= order.holder->chunks; ++chunk) {
      if (order.of(chunk).absent()) continue;
      const std::size_t at = firsts[ChunkId(chunk).index()].shown_at(shows_at);
      const std::int32_t layers = distinct_layers(context, order.rank, chunk);
      for (std::int32_t layer = 0; layer < layers; ++layer) {
        const Module* module = context.module_of(order.rank, chunk, layer);
        const auto index = as_index(module - list.data());
        if (!wanted[index]) continue;
        wanted[index] = false;
        --left;
        uses.push_back({.module = module, .order = &order, .chunk = chunk, .at = at});
      }
    }
  }
  return uses;
}

Diagnostic module_diagnostic(const Context& context, ModuleFinding found, const ModuleUse& use,
                             Severity severity) {
  Diagnostic finding{.severity = severity,
                     .message = std::string(te_condition(severity)) + found.message,
                     .labels = {{use.order->entries[use.at].span(), std::move(found.label)}},
                     .help = {.text = std::move(found.help)},
                     .witness = words::entries(context, *use.order, {})};
  if (found.replayed.size() > 1) {
    finding.witness.kind = WitnessKind::Replay;
    if (!found.second_label.empty()) {
      const Span second = use.order->entries[found.replayed[1]].span();
      finding.labels.push_back({second, std::move(found.second_label)});
    }
  } else {
    found.replayed = {use.at};
  }
  for (const std::size_t at : found.replayed)
    finding.witness.tasks.push_back(words::reference(context, *use.order, at));
  return finding;
}

void report_modules(const Context& context, const ModuleRule& rule, Findings& out) {
  const auto at_fault = [&](const Module& module) { return rule.at_fault(context, module); };
  const std::vector<Module>& list = context.options().modules.list;
  if (std::none_of(list.begin(), list.end(), at_fault)) return;  // as most rules of most verdicts
  std::optional<Severity> severity = captured_by_te(context);
  if (!severity && rule.under_every_plan) severity = Severity::Error;
  if (!severity) return;
  for (const ModuleUse& use : modules_at_fault(context, rule.shows_at, at_fault)) {
    if (out.found(*severity))
      out.report(module_diagnostic(context, rule.describe(context, use), use, *severity));
  }
}

}  // namespace capo::rules
