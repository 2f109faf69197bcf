#include "core/model/derive.h"

#include "core/model/inventory.h"

namespace capo {

namespace {

// The sizes of the tensor at the end of a module, whose shape is rows and columns.
const LayerTensor& input_of(const Inventory& inventory) {
  return inventory.tensors.front();
}

std::int64_t ffn_of(const ModelConfiguration& of, ModuleKind kind) {
  return is_grouped(kind) ? *of.expert_ffn / of.expert_tensor() : *of.ffn;
}

void take_shape(Module& module, const ModelConfiguration& of, const Inventory& inventory) {
  const ModuleKind kind = *module.kind;
  module.shape.tokens = input_of(inventory).shape.front();
  module.shape.hidden = of.hidden;
  if (is_mlp(kind)) module.shape.ffn = ffn_of(of, kind);
  if (is_grouped(kind)) module.shape.groups = *of.experts / of.expert_parallel;
}

WeightCopies copies_of(const Module& module) {
  return module.flags.high_precision_backward ? WeightCopies::Forward : WeightCopies::Both;
}

void take_bytes(Module& module, const Inventory& inventory) {
  module.derived = {.input = inventory.bytes(TensorUse::Input),
                    .output = inventory.bytes(TensorUse::Output),
                    .activations = inventory.bytes(TensorUse::Kept),
                    .operands = inventory.bytes(TensorUse::Left),
                    .weight = inventory.bytes(TensorUse::Parameter)};
  if (!quantizes(recipe_of(module))) return;
  module.derived.quantized_weight =
      inventory.quantized_weights(recipe_of(module), copies_of(module));
}

void take_sizes(Module& module, const ModelConfiguration& of) {
  const bool has_shape = module.shape != ModuleShape{};
  if (!module.kind || !follows_from_configuration(*module.kind) || has_shape) return;
  if (!module.dtype) {
    module.lacks = "dtype";
    return;
  }
  const MlpKind mlp = module.mlp.value_or(usual_mlp(of, *module.kind));
  const auto inventory = inventory_of(of, *module.kind, mlp, {*module.dtype, recipe_of(module)});
  if (!inventory) {
    module.lacks = inventory.error();
    return;
  }
  module.remakes = of.recompute == Recompute::Full;
  take_shape(module, of, *inventory);
  take_bytes(module, *inventory);
}

void take_types(Module& module, const std::optional<ModelConfiguration>& of) {
  if (of && !module.recipe) module.recipe = of->recipe;
  if (of && !module.weight_cache) module.weight_cache = of->weight_cache;
  if (of && !module.dtype) module.dtype = of->dtype;
  if (quantizes(recipe_of(module)) && !module.dtype) module.dtype = DataType::Bf16;
}

}  // namespace

void derive(Model& model) {
  for (Module& module : model.modules.list) {
    take_types(module, model.configuration);
    if (model.configuration) take_sizes(module, *model.configuration);
  }
}

}  // namespace capo
