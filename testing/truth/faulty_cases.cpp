#include <capo/testing/truth/faulty_cases.h>

#include <capo/core/base/assert.h>
#include <capo/core/rules/check.h>
#include <capo/core/text/load.h>
#include <capo/run/setup/complete_model.h>
#include <capo/testing/faults/faults.h>
#include <capo/testing/generators/sound_planned.h>
#include <capo/testing/generators/te_capturable_order.h>
#include <capo/testing/truth/declared_cases.h>
#include <capo/testing/truth/drawn_modules.h>
#include <capo/testing/truth/explained.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace capo::testing {

namespace {

// Those of which a weight gradient reads a buffer that TransformerEngine shares.
constexpr std::array kAliasing{ModuleKind::Linear, ModuleKind::GroupedLinear,
                               ModuleKind::LayerNormLinear};
constexpr std::size_t kMostDraws = 8;
constexpr std::size_t kSeldom = 16;

TruthCase reuse_case(Dice& dice) {
  Module module = draw_truth_module(dice, dice.pick(std::span<const ModuleKind>(kAliasing)));
  module.flags.bias = false;  // what becomes of its gradient is another matter
  const TeOrder order = draw_te_capturable_order(dice);
  TruthCase made{.words = order.text(), .module = words_of(module), .made = Made::Drawn};
  made.input = load(Source{.name = "case.te", .text = made.words},
                    {.form = TextForm::TeList, .te = order.declarations()})
                   .value();
  made.declared.modules = {.list = {std::move(module)}, .layers = {{{0}}}};
  made.declared.plan.kind = PlanKind::Te;
  return made;
}

bool is_rejected(const TruthCase& made) {
  const auto options = run::complete_model(made.declared, made.input.schedule).options;
  return check(made.input, options).verdict == Verdict::Rejected;
}

// A layer that hands no gradient back where another one waits for it has no course.
bool refused(const Declared& declared) {
  if (declared.schedule.topology == Topology::Independent) return false;
  const auto& modules = declared.options.modules.list;
  return std::any_of(modules.begin(), modules.end(),
                     [](const Module& module) { return !module.flags.input_requires_grad; });
}

// The window of a send is open until the chunk of the model that comes next ends. Behind the last
// one none does, so where another layer follows it nothing says when its send is over.
bool leaves_a_window_open(const Declared& declared) {
  const auto& ranks = declared.schedule.ranks;
  return !declared.options.plan.model_chunks.empty() &&
         std::any_of(ranks.begin(), ranks.end(), [](const RankOrder& rank) {
           return !rank.order.empty() && rank.order.back().chunk != 1;
         });
}

// A fault in something sound, drawn until there is one that has something to break. Faults that no
// run shows are passed over but for one in so many.
template <typename Draw>
TruthCase fault_case(Dice& dice, std::span<const Fault<Declared>> faults, Draw draw) {
  while (true) {
    const Fault<Declared>& fault = dice.pick(faults);
    if (!why_not_shown(fault.rules.front()).empty() && !dice.one_in(kSeldom)) continue;
    Declared sound = draw(dice);
    make_runnable(dice, sound);
    const auto broken = fault.apply(sound, dice.below(10'000));
    // Without a plan there is nothing that could be run.
    if (!broken || !broken->subject.options.plan.kind) continue;
    Declared declared = broken->subject;
    fill_shapes(declared);
    if (refused(declared) || leaves_a_window_open(declared)) continue;
    TruthCase made = case_of(std::move(declared));
    made.fault = fault.name;
    made.made = Made::Faulty;
    made.rule = broken->rule;
    return made;
  }
}

}  // namespace

TruthCase draw_reuse_case(Dice& dice) {
  return draw_reuse_case(dice, is_rejected);
}

TruthCase draw_reuse_case(Dice& dice, const std::function<bool(const TruthCase&)>& hurts) {
  TruthCase made = reuse_case(dice);
  try {
    for (std::size_t draws = 1; draws < kMostDraws && !hurts(made); ++draws) {
      made = reuse_case(dice);
    }
  } catch (const InternalError&) {
    return made;
  }
  return made;
}

TruthCase draw_plan_fault_case(Dice& dice) {
  return fault_case(dice, plan_faults(), draw_sound_planned);
}

TruthCase draw_module_fault_case(Dice& dice) {
  return fault_case(dice, module_faults(), draw_unwired_declared);
}

}  // namespace capo::testing
