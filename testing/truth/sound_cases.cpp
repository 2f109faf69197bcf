#include "testing/truth/drawn_cases.h"

#include "core/input/load.h"
#include "schedules/catalogue.h"
#include "testing/generators/sound_order.h"
#include "testing/generators/sound_planned.h"
#include "testing/generators/sound_schedule.h"
#include "testing/truth/drawn_modules.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace capo::testing {

namespace {

std::optional<TruthCase> published_case(Dice& dice) {
  const auto& entries = schedules::entries();
  const auto& entry = entries[dice.below(entries.size())];
  schedules::Request request{.name = std::string(entry.name),
                             .ranks = dice.between(1, 4),
                             .microbatches = 2 * dice.between(1, 4)};
  auto schedule = schedules::schedule_named(request);
  if (!schedule) {
    request.memory_limit = 2 * request.ranks;
    schedule = schedules::schedule_named(request);
  }
  if (!schedule) return std::nullopt;
  return TruthCase{.words = fmt::format("{} of {} ranks, {} microbatches", entry.name,
                                        request.ranks, request.microbatches),
                   .input = {.form = Form::OrderFile, .schedule = *std::move(schedule)}};
}

TruthCase order_case(Dice& dice) {
  const TeOrder order = draw_sound_order(dice);
  TruthCase made{.words = order.text()};
  made.input = load(Source{.name = "case.te", .text = made.words},
                    {.form = TextForm::TeList, .te = order.declarations()})
                   .value();
  return made;
}

// All layers get one module.
TruthCase of_one_module(Dice& dice, TruthCase made) {
  Module module = draw_truth_module(dice, dice.pick(std::span<const ModuleKind>(kTruthKinds)));
  made.module = words_of(module);
  made.declared.modules = {.list = {std::move(module)}, .layers = {{{0}}}};
  made.declared.plan.kind = PlanKind::Safe;
  return made;
}

}  // namespace

TruthCase draw_published_case(Dice& dice) {
  auto made = published_case(dice);
  return of_one_module(dice, made ? *std::move(made) : order_case(dice));
}

TruthCase draw_order_case(Dice& dice) {
  return of_one_module(dice, order_case(dice));
}

TruthCase draw_schedule_case(Dice& dice) {
  Declared declared{.schedule = draw_sound_schedule(dice), .options = {}};
  for (RankOrder& rank : declared.schedule.ranks) rank.replay.reset();
  return of_one_module(dice, case_of(std::move(declared)));
}

TruthCase draw_planned_case(Dice& dice) {
  Declared declared = draw_sound_planned(dice);
  make_runnable(dice, declared);
  return case_of(std::move(declared));
}

TruthCase draw_declared_case(Dice& dice) {
  Declared declared = draw_unwired_declared(dice);
  make_runnable(dice, declared);
  return case_of(std::move(declared));
}

}  // namespace capo::testing
