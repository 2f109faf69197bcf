#include "core/model/derive.h"

#include "core/model/inventory.h"

namespace capo {

namespace {

// The sizes of the tensor at the end of a module, whose shape is rows and columns.
const LayerTensor& input_of(const Inventory& inventory) {
  return inventory.tensors.front();
}

// Tells what the layer has that modules of capo's have not. Experts by themselves are a rank's
// share however they are divided. If a sequence is, a rank's attention reads keys of others.
std::string_view unrun_of(const ModelConfiguration& of, ModuleKind kind, const Inventory& inventory,
                          bool experts) {
  if (is_grouped(kind)) return "";
  if (of.tensor_parallel > 1) return "tensor_parallel above 1";
  if (experts && of.expert_tensor() > 1) return "expert_tensor_parallel above 1";
  if (inventory.attention) {
    if (of.latent) return "latent attention";
    if (of.qk_norm) return "norms of queries and keys";
    if (of.context_parallel > 1) return "context_parallel above 1";
  }
  if (!experts) return "";
  if (of.shared_experts > 0) return "shared experts";
  if (*of.top_k > *of.experts / of.expert_parallel) return "more top_k than experts on a rank";
  if (of.capacity_factor != 1) return "a capacity_factor";
  return "";
}

void take_shape(Module& module, const ModelConfiguration& of, MlpKind mlp,
                const Inventory& inventory) {
  const ModuleKind kind = *module.kind;
  const bool halves = has_two_halves(kind);
  const bool routes = halves ? mlp == MlpKind::Experts : has_router(kind);
  const bool experts = routes || is_grouped(kind);
  ModuleShape& shape = module.shape;
  shape.tokens = input_of(inventory).shape.front();
  shape.hidden = of.hidden;
  module.unrun = unrun_of(of, kind, inventory, routes);
  if (halves && !module.unrun.empty()) return;
  if (experts) {
    shape.ffn = *of.expert_ffn / of.expert_tensor();
    shape.groups = *of.experts / of.expert_parallel;
  } else if (is_mlp(kind) || halves) {
    shape.ffn = *of.ffn;
  }
  if (routes && module.unrun.empty()) shape.top_k = of.top_k;
  if (!inventory.attention) return;
  shape.heads = of.heads;
  shape.kv_heads = of.kv_heads.value_or(*of.heads);
  shape.head_dim = inventory.attention->qk_size;
  shape.sequence = of.sequence;
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
  take_shape(module, of, mlp, *inventory);
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
