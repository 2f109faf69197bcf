// Readers of the large parts of a model.json: `modules`, the `layers` that name them, `groups` and
// `configuration`.
//
//   "modules": {"attn": {"kind": "layernorm-linear"}, "moe": {"kind": "grouped-mlp"}}
//   "layers": "attn"                            every layer
//   "layers": ["attn", "moe"]                   the layers of every chunk
//   "layers": [["attn"], ["attn", "moe"]]       the chunks of every rank
//   "layers": [[["attn"]], [["moe"]]]           the ranks
//   "groups": [{"name": "ep", "members": [0, 1], "actions": ["dispatch-F", "combine-F"],
//               "streams": {"combine-F": "comm2"}}]
//
// The depth of the names says which of the four forms `layers` has, so all names lie equally deep.
// The parts do not know each other: model_reader.cpp hands the modules to their layers.
//
// The flags of a module stand in one table for everybody who reads, writes or drops them. It is not
// in model.h, which kernels include, since nvcc cannot compile a pointer to a member without a
// warning. Tested by model_reader_test.cpp.

#pragma once

#include "core/model/model.h"
#include "core/text/json_fields.h"
#include "core/text/json_value.h"
#include "core/text/limits.h"
#include "core/text/refusal.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace capo {

/// A flag of a module by the name that model.json gives it.
struct ModuleFlag {
  std::string_view key;
  bool ModuleFlags::*slot;
};

inline constexpr std::array<ModuleFlag, 27> kModuleFlags{{
    {"delay_wgrad", &ModuleFlags::delay_wgrad},
    {"fuse_wgrad_accumulation", &ModuleFlags::fuse_wgrad_accumulation},
    {"overwrite_main_grad", &ModuleFlags::overwrite_main_grad},
    {"grad_added_to_main_grad", &ModuleFlags::grad_added_to_main_grad},
    {"zero_out_wgrad", &ModuleFlags::zero_out_wgrad},
    {"is_first_microbatch", &ModuleFlags::is_first_microbatch},
    {"wgrad_hooks", &ModuleFlags::wgrad_hooks},
    {"frozen_weight", &ModuleFlags::frozen_weight},
    {"shared_weight", &ModuleFlags::shared_weight},
    {"bias", &ModuleFlags::bias},
    {"single_weight", &ModuleFlags::single_weight},
    {"single_bias", &ModuleFlags::single_bias},
    {"scale_bias", &ModuleFlags::scale_bias},
    {"sharded_weight", &ModuleFlags::sharded_weight},
    {"save_original_input", &ModuleFlags::save_original_input},
    {"high_precision_backward", &ModuleFlags::high_precision_backward},
    {"gathered_input", &ModuleFlags::gathered_input},
    {"gathered_grad_output", &ModuleFlags::gathered_grad_output},
    {"input_requires_grad", &ModuleFlags::input_requires_grad},
    {"contiguous_input", &ModuleFlags::contiguous_input},
    {"contiguous_output", &ModuleFlags::contiguous_output},
    {"clone_param_grads", &ModuleFlags::clone_param_grads},
    {"synchronises", &ModuleFlags::synchronises},
    {"unjoined_stream", &ModuleFlags::unjoined_stream},
    {"offloaded", &ModuleFlags::offloaded},
    {"hooks", &ModuleFlags::hooks},
    {"hooks_each_call", &ModuleFlags::hooks_each_call},
}};

inline constexpr std::array kDataTypes{DataType::Bf16, DataType::Fp16, DataType::Fp32};
inline constexpr std::array kRecipes{Recipe::None,  Recipe::Delayed, Recipe::Current,
                                     Recipe::Block, Recipe::Mxfp8,   Recipe::Nvfp4};

inline constexpr std::array kWeightCaches{WeightCache::Device, WeightCache::Python};

/// Whether a `dtype` is fp8, which models said before there were recipes.
[[nodiscard]] bool is_fp8(const JsonValue& type);

/// Refuses a `dtype` of fp8 beside the recipe none.
[[nodiscard]] std::optional<Refusal> refuse_fp8_beside(const JsonValue& type,
                                                       const std::optional<Recipe>& recipe);

/// Reads the `dtype` of a module or a configuration whose `recipe` has been read. One of fp8 is
/// bf16 with the recipe current, unless another is declared.
template <typename Into>
[[nodiscard]] std::optional<Refusal> read_type(const JsonValue& value, std::string_view what,
                                               Into& into) {
  if (!is_fp8(value)) return put<&Into::dtype, read_choice<kDataTypes>>(value, what, into);
  if (auto refusal = refuse_fp8_beside(value, into.recipe)) return refusal;
  into.dtype = DataType::Bf16;
  if (!into.recipe) into.recipe = Recipe::Current;
  return std::nullopt;
}

[[nodiscard]] Read<std::vector<Module>> read_modules(const JsonValue& value, const Limits& limits);

/// Indices into `modules` by rank, chunk and layer, as ModuleTable holds them.
[[nodiscard]] Read<std::vector<std::vector<std::vector<std::int32_t>>>> read_module_layers(
    const JsonValue& value, const std::vector<Module>& modules, const Limits& limits);

/// The configuration has no fault.
[[nodiscard]] Read<ModelConfiguration> read_configuration(const JsonValue& value);

[[nodiscard]] Read<std::vector<CollectiveGroup>> read_groups(const JsonValue& value,
                                                             const Limits& limits);

}  // namespace capo
