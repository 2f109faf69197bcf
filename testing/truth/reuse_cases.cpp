#include "testing/truth/drawn_cases.h"

#include "core/base/assert.h"
#include "core/input/load.h"
#include "core/rules/check.h"
#include "core/rules/undeclared.h"
#include "run/setup/complete_model.h"
#include "testing/generators/sound_order.h"
#include "testing/truth/drawn_modules.h"

#include <array>
#include <optional>
#include <span>
#include <utility>

namespace capo::testing {

namespace {

// Weight gradients of these kinds read a buffer that TransformerEngine shares.
constexpr std::array kAliasing{ModuleKind::Linear, ModuleKind::GroupedLinear,
                               ModuleKind::LayerNormLinear};
constexpr std::size_t kMostHurt = 8;
constexpr std::size_t kMostSpared = 64;

Module aliasing_module(Dice& dice) {
  Module module = draw_truth_module(dice, dice.pick(std::span<const ModuleKind>(kAliasing)));
  module.flags.bias = false;  // a bias has a gradient that would be lost as well
  return module;
}

TruthCase reuse_case(Dice& dice) {
  Module module = aliasing_module(dice);
  const TeOrder order = draw_te_capturable_order(dice);
  TruthCase made{.words = order.text(), .module = words_of(module), .made = Made::Drawn};
  made.input = load(Source{.name = "case.te", .text = made.words},
                    {.form = TextForm::TeList, .te = order.declarations()})
                   .value();
  made.declared.modules = {.list = {std::move(module)}, .layers = {{{0}}}};
  made.declared.plan.kind = PlanKind::Te;
  return made;
}

bool has_verdict(const TruthCase& made, Verdict verdict) {
  const auto options = run::complete_model(made.declared, made.input.schedule).options;
  return check(made.input, options).verdict == verdict;
}

// Whether some weight gradient does not come right behind its backward.
bool has_late_weight(const TruthCase& made) {
  const std::vector<Entry>& order = made.input.schedule.ranks.front().order;
  for (std::size_t at = 1; at < order.size(); ++at) {
    if (order[at].kind != Kind::BackwardWeight) continue;
    const Action backward{
        .kind = Kind::Backward, .chunk = order[at].chunk, .microbatch = order[at].microbatch};
    if (order[at - 1].action() != backward) return true;
  }
  return false;
}

// Draws up to `most` cases for one that is wanted; nullopt if none is.
std::optional<TruthCase> wanted_case(Dice& dice, std::size_t most, const IsWanted& is_wanted) {
  for (std::size_t draws = 0; draws < most; ++draws) {
    TruthCase made = reuse_case(dice);
    try {
      if (is_wanted(made)) return made;
    } catch (const InternalError&) {
      return made;
    }
  }
  return std::nullopt;
}

}  // namespace

TruthCase draw_reuse_case(Dice& dice) {
  return draw_reuse_case(dice,
                         [](const TruthCase& of) { return has_verdict(of, Verdict::Rejected); });
}

TruthCase draw_reuse_case(Dice& dice, const IsWanted& hurts) {
  auto hurt = wanted_case(dice, kMostHurt, hurts);
  return hurt ? *std::move(hurt) : reuse_case(dice);
}

TruthCase draw_undeclared_case(Dice& dice) {
  TruthCase made = draw_published_case(dice);
  while (!has_undeclared(made.input.schedule, {})) made = draw_published_case(dice);
  Module module = aliasing_module(dice);
  made.module = words_of(module);
  made.declared.modules.list = {std::move(module)};
  made.declared.plan.kind = PlanKind::Te;
  Environment& environment = made.declared.environment;
  const std::size_t stated = dice.below(4);
  if (stated == 0) environment.communicators = static_cast<Communicators>(dice.below(3));
  if (stated == 1) environment.transfers = static_cast<TransferMode>(dice.below(2));
  return made;
}

TruthCase draw_spared_case(Dice& dice) {
  return draw_spared_case(dice, [](const TruthCase& of) {
    return has_late_weight(of) && has_verdict(of, Verdict::Accepted);
  });
}

TruthCase draw_spared_case(Dice& dice, const IsWanted& spares) {
  auto spared = wanted_case(dice, kMostSpared, spares);
  return spared ? *std::move(spared) : draw_planned_case(dice);
}

}  // namespace capo::testing
