#include "core/base/index.h"
#include "testing/truth/drawn_cases.h"

#include "core/input/load.h"
#include "core/model/module_kinds.h"
#include "core/text/order_text.h"
#include "testing/truth/drawn_modules.h"

#include <set>
#include <string>
#include <utility>

namespace capo::testing {

namespace {

// The kinds that the schedule's layers are of, in words.
std::string modules_in(const ModuleTable& table) {
  std::set<std::int32_t> used;
  for (const auto& rank : table.layers) {
    for (const auto& chunk : rank) used.insert(chunk.begin(), chunk.end());
  }
  std::string words;
  for (const std::int32_t module : used) {
    if (!words.empty()) words += ", ";
    words += words_of(table.list[as_index(module)]);
  }
  return words;
}

}  // namespace

void make_runnable(Dice& dice, Declared& declared) {
  const std::int32_t width = 8 * dice.between(2, 4);
  const std::int32_t tokens = 8 * dice.between(1, 4);
  const std::int32_t groups = dice.between(1, 8);
  const DataType type = dice.one_in(4) ? DataType::Fp16 : DataType::Bf16;
  for (RankOrder& rank : declared.schedule.ranks) {
    for (Entry& entry : rank.order) entry.group = Group::Alone;
  }
  for (Module& module : declared.options.modules.list) {
    module.dtype = type;
    module.shape = {.tokens = tokens, .hidden = width};
    draw_sizes(dice, *module.kind, module.shape);
    if (has_router(module)) module.flags.bias = false;
    module.main_grad.reset();
    if (is_grouped(*module.kind)) module.shape.groups = groups;
    module.flags.input_requires_grad = true;
  }
}

Declared draw_unwired_declared(Dice& dice) {
  Declared declared = draw_sound_declared(dice);
  Schedule& schedule = declared.schedule;
  schedule.topology = Topology::Independent;
  schedule.stages.reset();
  for (RankOrder& rank : schedule.ranks) rank.stages.clear();
  return declared;
}

void fill_shapes(Declared& declared) {
  auto& modules = declared.options.modules.list;
  const Module first = modules.front();
  for (Module& module : modules) {
    if (!module.dtype) module.dtype = first.dtype;
    if (!module.shape.tokens) module.shape.tokens = first.shape.tokens;
    if (!module.shape.hidden) module.shape.hidden = first.shape.hidden;
    // A layer is as wide behind as in front, whatever it makes in between.
    if (!module.shape.ffn && !module.shape.heads) module.shape.ffn = first.shape.hidden;
  }
}

TruthCase case_of(Declared declared) {
  TruthCase made{.words = print_order_file(declared.schedule),
                 .module = modules_in(declared.options.modules),
                 .declared = std::move(declared.options)};
  made.input =
      load(Source{.name = "case.order", .text = made.words}, {.form = TextForm::OrderFile}).value();
  return made;
}

}  // namespace capo::testing
