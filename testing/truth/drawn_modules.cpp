#include "testing/truth/drawn_modules.h"

#include "core/model/module_kinds.h"

#include <fmt/format.h>

namespace capo::testing {

void draw_heads(Dice& dice, ModuleShape& shape) {
  shape.kv_heads = dice.between(1, 2);
  shape.heads = *shape.kv_heads * dice.between(1, 3);
  shape.head_dim = 8 * dice.between(1, 2);
  shape.sequence = 4 * dice.between(1, 2);
}

Module draw_truth_module(Dice& dice, ModuleKind kind) {
  Module module{.name = std::string(name_of(kind)),
                .kind = kind,
                .dtype = dice.one_in(4) ? DataType::Fp16 : DataType::Bf16};
  const std::int32_t width = 8 * dice.between(2, 4);
  module.shape = {.tokens = 8 * dice.between(1, 4), .hidden = width};
  if (is_attention(kind)) {
    draw_heads(dice, module.shape);
  } else {
    module.shape.ffn = width;
  }
  if (is_grouped(kind)) {
    module.shape.groups = dice.between(1, 8);
    module.splits = Splits::Device;
    module.flags.single_weight = dice.one_in(2);
  }
  module.flags.bias = dice.one_in(3);
  module.flags.fuse_wgrad_accumulation = true;
  module.flags.grad_added_to_main_grad = dice.one_in(2);
  if (dice.one_in(4)) module.recipe = dice.one_in(2) ? Recipe::Block : Recipe::Mxfp8;
  return module;
}

std::string words_of(const Module& module) {
  const Recipe recipe = recipe_of(module);
  return fmt::format("{} {}{}{}{}", name_of(*module.kind), name_of(*module.dtype),
                     recipe == Recipe::None ? "" : " ",
                     recipe == Recipe::None ? "" : name_of(recipe),
                     module.flags.bias ? " bias" : "");
}

}  // namespace capo::testing
