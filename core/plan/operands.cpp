#include "core/plan/operands.h"

namespace capo {

namespace {

// A quantized copy is made of both operands, unless backward is told to do without.
bool copies(const Module& module) {
  return quantizes(recipe_of(module)) && !module.flags.high_precision_backward;
}

bool keeps_input(const Module& module) {
  const KeptInput kept = facts_of(*module.kind).kept_input;
  if (kept == KeptInput::Made) return false;
  if (kept == KeptInput::InputAndSizes && module.splits == Splits::Input) return true;
  return !copies(module) && !module.flags.gathered_input && module.flags.contiguous_input;
}

bool keeps_grad_output(const Module& module) {
  return facts_of(*module.kind).keeps_grad_output && !copies(module) &&
         !module.flags.gathered_grad_output;
}

}  // namespace

// The framework's modules hand autograd the whole quantized weight, its row-wise copy included
// (docs/fp8.md has the places). Without a gradient of the input nothing of it is read again.
bool keeps_quantized_weight(const Module& module) {
  if (!module.kind || !copies(module) || module.weight_cache || module.remakes) return false;
  return module.flags.input_requires_grad || !is_one_product(*module.kind) ||
         has_norm(*module.kind);
}

std::optional<Aliases> aliases_of(const Module& module) {
  if (!module.kind) return std::nullopt;
  return Aliases{.input = keeps_input(module), .grad_output = keeps_grad_output(module)};
}

bool makes_for_weight(const Module& module) {
  if (!module.kind) return false;
  // W reads its quantized operand elsewhere than the sizes that lie in the input.
  const bool for_sizes = copies(module) && keeps_input(module);
  return facts_of(*module.kind).kept_input == KeptInput::InputAndMade || for_sizes;
}

}  // namespace capo
