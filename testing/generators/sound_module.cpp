#include "testing/generators/sound_module.h"

#include "core/frameworks/te/contract.h"
#include "core/model/module_kinds.h"

#include <cstdint>
#include <utility>

namespace capo::testing {

namespace {

ModuleKind draw_kind(Dice& dice, bool delays) {
  // The last kind, ops.BasicLinear, has no delay.
  return kModuleKinds[dice.below(kModuleKinds.size() - (delays ? 1 : 0))];
}

ModuleFlags draw_flags(Dice& dice, ModuleKind kind, bool delays) {
  const bool operation = gradients::is_operation(kind);
  ModuleFlags flags{.delay_wgrad = delays,
                    .fuse_wgrad_accumulation = delays || dice.one_in(2),
                    .shared_weight = dice.one_in(4),
                    .save_original_input = dice.one_in(4),
                    .gathered_input = dice.one_in(4)};
  flags.grad_added_to_main_grad = flags.fuse_wgrad_accumulation && dice.one_in(2);
  flags.zero_out_wgrad = flags.grad_added_to_main_grad && dice.one_in(4);
  flags.wgrad_hooks = delays && !operation && dice.one_in(2);
  flags.bias = (!delays || operation) && dice.one_in(2);
  flags.single_weight = is_grouped(kind) && dice.one_in(2);
  flags.input_requires_grad = !flags.grad_added_to_main_grad || dice.one_in(2);
  // Copies may be left out where somebody takes what is returned, or nothing is (G10).
  const bool norms = has_norm(kind) || is_made_of_modules(kind);
  const bool returns = !flags.fuse_wgrad_accumulation || flags.bias || norms;
  flags.clone_param_grads = (returns && !flags.grad_added_to_main_grad) || dice.one_in(2);
  return flags;
}

MainGrad draw_main_grad(Dice& dice, const ModuleShape& shape, ModuleKind kind) {
  const std::int64_t in = *shape.hidden;
  const std::int64_t out = *shape.ffn;
  const std::int64_t groups = *shape.groups;
  // A grouped-mlp has two weights, of which the sizes alone do not say which is meant.
  if (kind == ModuleKind::GroupedMlp || dice.one_in(2))
    return {.shape = {groups, out, in}, .strides = {out * in, in, 1}};
  return {.shape = {groups * out * in}, .strides = {1}};
}

Recipe draw_recipe(Dice& dice) {
  return static_cast<Recipe>(dice.below(6));
}

}  // namespace

Module draw_sound_module(Dice& dice, Delay delay, std::string name) {
  const bool delays = delay == Delay::Always;
  const ModuleKind kind = draw_kind(dice, delays);
  Module module{.name = std::move(name), .kind = kind, .flags = draw_flags(dice, kind, delays)};
  if (!dice.one_in(3)) module.dtype = static_cast<DataType>(dice.below(3));
  if (dice.one_in(3)) module.recipe = draw_recipe(dice);
  if (quantizes(recipe_of(module)) && !module.dtype) module.dtype = DataType::Bf16;
  if (!is_made_of_modules(kind)) module.grad_buckets = dice.between(1, 3);
  if (!delays) module.calls = dice.between(1, 2);
  if (!is_grouped(kind)) return module;
  if (module.dtype == DataType::Fp32) module.dtype = DataType::Bf16;  // has no path of its own
  module.shape = {
      .hidden = dice.between(1, 8), .ffn = dice.between(1, 8), .groups = dice.between(1, 64)};
  // No device has a grouped product for delayed scales, nor a module one for overrides.
  if (recipe_of(module) == Recipe::Delayed) module.recipe = Recipe::Current;
  module.splits = dice.one_in(2) ? Splits::Device : Splits::Input;
  if (module.flags.single_weight) module.main_grad = draw_main_grad(dice, module.shape, kind);
  return module;
}

}  // namespace capo::testing
