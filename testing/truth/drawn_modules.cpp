#include "testing/truth/drawn_modules.h"

#include "core/model/module_kinds.h"

#include <fmt/format.h>

namespace capo::testing {

namespace {

void draw_heads(Dice& dice, ModuleShape& shape) {
  shape.kv_heads = dice.between(1, 2);
  shape.heads = *shape.kv_heads * dice.between(1, 3);
  shape.head_dim = 8 * dice.between(1, 2);
  shape.sequence = 4 * dice.between(1, 2);
}

void draw_experts(Dice& dice, ModuleShape& shape) {
  shape.groups = dice.between(3, 6);
  shape.top_k = dice.between(1, 3);
}

}  // namespace

void draw_sizes(Dice& dice, ModuleKind kind, ModuleShape& shape) {
  const bool halves = has_two_halves(kind);
  if (is_attention(kind) || halves) draw_heads(dice, shape);
  if (!is_attention(kind)) shape.ffn = shape.hidden;
  if (has_router(kind) || (halves && dice.one_in(2))) draw_experts(dice, shape);
}

Module draw_truth_module(Dice& dice, ModuleKind kind) {
  Module module{.name = std::string(name_of(kind)),
                .kind = kind,
                .dtype = dice.one_in(4) ? DataType::Fp16 : DataType::Bf16};
  const std::int32_t width = 8 * dice.between(2, 4);
  module.shape = {.tokens = 8 * dice.between(1, 4), .hidden = width};
  draw_sizes(dice, kind, module.shape);
  if (is_grouped(kind)) {
    module.shape.groups = dice.between(1, 8);
    module.splits = Splits::Device;
    module.flags.single_weight = dice.one_in(2);
  }
  module.flags.bias = dice.one_in(3) && !has_router(module);
  module.flags.fuse_wgrad_accumulation = true;
  module.flags.grad_added_to_main_grad = dice.one_in(2);
  if (dice.one_in(4)) module.recipe = dice.one_in(2) ? Recipe::Block : Recipe::Mxfp8;
  return module;
}

std::string words_of(const Module& module) {
  const Recipe recipe = recipe_of(module);
  const bool experts = has_two_halves(*module.kind) && has_router(module);
  return fmt::format("{}{} {}{}{}{}", name_of(*module.kind), experts ? " experts" : "",
                     name_of(*module.dtype), recipe == Recipe::None ? "" : " ",
                     recipe == Recipe::None ? "" : name_of(recipe),
                     module.flags.bias ? " bias" : "");
}

}  // namespace capo::testing
