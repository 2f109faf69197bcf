#include "testing/truth/drawn_cases.h"

#include "core/rules/check.h"
#include "run/setup/complete_model.h"
#include "testing/faults/faults.h"
#include "testing/generators/sound_planned.h"
#include "testing/truth/explained.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

namespace capo::testing {

namespace {

constexpr std::size_t kSeldom = 16;

bool is_rejected_by(std::string_view rule, const TruthCase& made) {
  const auto options = run::complete_model(made.declared, made.input.schedule).options;
  const auto result = check(made.input, options);
  const auto& findings = result.diagnostics.kept();
  return std::any_of(findings.begin(), findings.end(), [&](const Diagnostic& finding) {
    return finding.rule == rule && finding.severity == Severity::Error;
  });
}

// A layer that hands no gradient back to a layer that waits for it cannot be run.
bool refused(const Declared& declared) {
  if (has_resets(declared.schedule)) return true;  // a run replays its graphs again and again
  if (declared.schedule.topology == Topology::Independent) return false;
  const auto& modules = declared.options.modules.list;
  return std::any_of(modules.begin(), modules.end(),
                     [](const Module& module) { return !module.flags.input_requires_grad; });
}

// The case under capo's own plan if it is a fault there too, or else the case itself.
TruthCase under_safe_plan(TruthCase made) {
  TruthCase safe = made;
  safe.declared.plan.kind = PlanKind::Safe;
  return is_rejected_by(made.rule, safe) ? safe : made;
}

// Draws a fault and a sound order until the fault has something to break. Faults that no run shows
// are passed over but for one in kSeldom.
template <typename Draw>
TruthCase fault_case(Dice& dice, std::span<const Fault<Declared>> faults, Draw draw) {
  while (true) {
    const Fault<Declared>& fault = dice.pick(faults);
    if (!why_not_shown(fault.rules.front()).empty() && !dice.one_in(kSeldom)) continue;
    Declared sound = draw(dice);
    make_runnable(dice, sound);
    const auto broken = fault.apply(sound, dice.below(10'000));
    // An order without a plan cannot be run.
    if (!broken || !broken->subject.options.plan.kind) continue;
    Declared declared = broken->subject;
    fill_shapes(declared);
    if (refused(declared)) continue;
    TruthCase made = case_of(std::move(declared));
    made.fault = fault.name;
    made.made = Made::Faulty;
    made.rule = broken->rule;
    return dice.one_in(2) ? under_safe_plan(std::move(made)) : made;
  }
}

}  // namespace

TruthCase draw_plan_fault_case(Dice& dice) {
  return fault_case(dice, plan_faults(), draw_sound_planned);
}

TruthCase draw_module_fault_case(Dice& dice) {
  return fault_case(dice, module_faults(), draw_unwired_declared);
}

}  // namespace capo::testing
