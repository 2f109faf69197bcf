#include "core/frameworks/te/quantization.h"

#include "core/base/assert.h"
#include "core/model/module_kinds.h"

#include <fmt/format.h>

#include <algorithm>

namespace capo::te {

namespace {

bool may_be(const RecipeSupport& row, const Environment& environment) {
  return !environment.architecture || *environment.architecture == row.architecture;
}

// Whether any row of the recipe that the environment leaves open has what is asked for.
template <typename Asked>
bool any_row(Recipe recipe, const Environment& environment, Asked asked) {
  return std::any_of(kRecipeSupport.begin(), kRecipeSupport.end(), [&](const RecipeSupport& row) {
    return row.recipe == recipe && may_be(row, environment) && asked(row);
  });
}

bool has_grouped_path(const RecipeSupport& row, const Environment& environment) {
  return row.grouped_from && (!environment.cublaslt || *environment.cublaslt >= *row.grouped_from);
}

// The module's predicate looks at a backward override, which the operations' does not.
bool is_overridden(const Module& module) {
  return module.flags.high_precision_backward && quantizes(recipe_of(module)) &&
         !facts_of(*module.kind).operation;
}

std::string_view device_words(const Environment& environment) {
  if (!environment.architecture) return "";
  return *environment.architecture == Architecture::Hopper ? " on Hopper" : " on Blackwell";
}

std::string version_words(std::int32_t version) {
  return fmt::format("{}.{}", version / 100, version % 100);
}

}  // namespace

namespace {

// A dense MLP behind a norm, by itself or in a layer.
bool has_layernorm_mlp(const Module& module) {
  if (module.kind == ModuleKind::LayerNormMlp) return true;
  return module.kind == ModuleKind::TransformerLayer &&
         module.mlp.value_or(MlpKind::Dense) == MlpKind::Dense;
}

}  // namespace

bool fetches_sizes(const Module& module, const Environment& environment) {
  const bool on_device = module.splits && module.splits != Splits::Host;
  if (!module.kind || !is_grouped(*module.kind) || !on_device) return false;
  if (module.dtype == DataType::Fp32 || !runs(recipe_of(module), environment)) return false;
  return !may_take_sizes_from_device(module, environment);
}

bool misses_bias_gradient(const Module& module, const Version& version) {
  const ModuleFlags& flags = module.flags;
  if (!module.kind || !flags.delay_wgrad || flags.frozen_weight || !flags.bias) return false;
  if (!quantizes(recipe_of(module)) || flags.high_precision_backward) return false;
  const bool of_base = facts_of(*module.kind).bias_gradient == BiasGradientMade::WithWeight;
  return has_layernorm_mlp(module) || (of_base && version.converts_missing_bias);
}

bool runs(Recipe recipe, const Environment& environment) {
  return any_row(recipe, environment, [](const RecipeSupport& row) { return row.runs; });
}

bool may_take_sizes_from_device(const Module& module, const Environment& environment) {
  if (!module.kind || module.dtype == DataType::Fp32 || is_overridden(module)) return false;
  return any_row(recipe_of(module), environment,
                 [&](const RecipeSupport& row) { return has_grouped_path(row, environment); });
}

std::string why_sizes_come_from_host(const Module& module, const Environment& environment) {
  CAPO_ASSERT(module.kind && !may_take_sizes_from_device(module, environment),
              "sizes come from the host");
  if (module.dtype == DataType::Fp32) return "grouped products are of 16 bits";
  if (is_overridden(module)) return "a backward override has no grouped product";
  const Recipe recipe = recipe_of(module);
  const std::string what =
      recipe == Recipe::None ? "a product of 16 bits" : fmt::format("recipe {}", name_of(recipe));
  std::optional<std::int32_t> from;
  for (const RecipeSupport& row : kRecipeSupport) {
    if (row.recipe != recipe || !may_be(row, environment) || !row.grouped_from) continue;
    from = std::min(from.value_or(*row.grouped_from), *row.grouped_from);
  }
  if (!from) return fmt::format("{} has no grouped product{}", what, device_words(environment));
  return fmt::format("{} has a grouped product{} from cuBLASLt {} on, and this is {}", what,
                     device_words(environment), version_words(*from),
                     version_words(*environment.cublaslt));
}

}  // namespace capo::te
