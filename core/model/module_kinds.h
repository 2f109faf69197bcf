// A module kind is one row of facts: its name, its parts, and how a framework treats it.
//
// Rules, plans, the gradient contract, readers of names and runs ask this table and list no kinds
// themselves. What a kind computes stands in run/modules/, one file a family, and its formulas once
// more in run/reference/. A new kind is an enumerator, a row, that file and those formulas;
// tests/architecture/new_kind/ adds an imaginary one and counts the files.
//
// The table says nothing of flags or sizes: core/frameworks/te/contract.h and core/plan/ combine
// its facts with them. Tested by module_kinds_test.cpp.

#pragma once

#include "core/base/index.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace capo {

/// A kind says what a layer computes, as far as its operands and buffers go.
enum class ModuleKind : std::uint8_t {
  Linear,
  GroupedLinear,
  LayerNormLinear,
  LayerNormMlp,
  GroupedMlp,
  Attention,  ///< causal, of grouped queries, between a product that makes qkv and one behind it
  TransformerLayer,
  MoeLayer,         ///< the half of a transformer layer that has the experts, with its norm, its
                    ///< router and its residual sum
  GroupedLinearOp,  ///< a basic operation of TE, and no module
  BasicLinearOp,    ///< a basic operation of TE as well
};

enum class Makeup : std::uint8_t {
  OneProduct,  ///< one weight; the output has `ffn` columns
  Mlp,         ///< two weights and an activation between them; the output has `hidden` columns
  Attention,   ///< two weights and attention between them; the output has `hidden` columns
  Modules,     ///< several modules that have kinds of their own; the output has `hidden` columns
};

enum class KeptInput : std::uint8_t {
  Input,          ///< W reads the input itself, unless the module has to copy it
  InputAndSizes,  ///< W also reads the sizes of groups there, even if it copies the rows
  InputAndMade,   ///< W reads the input likewise, and what forward made behind the first product
  Made,           ///< W reads something that forward made: a norm's output, or a copy
};

enum class BiasGradientMade : std::uint8_t {
  WithWeight,       ///< the product of the weight gradient makes it
  WithWeightSplit,  ///< that product makes it on the split path, and backward on the grouped one
  WithBackward,     ///< backward makes it in any case
};

/// Defaults are the facts of a linear.
struct ModuleKindFacts {
  ModuleKind kind;
  std::string_view name;  ///< in model.json and on the command line
  Makeup makeup = Makeup::OneProduct;
  bool grouped = false;  ///< its rows are in groups, and each group has a weight of its own
  bool norm = false;     ///< a norm stands in front of its product
  bool router = false;   ///< its rows choose their groups, so that nobody gives the sizes of these
  KeptInput kept_input = KeptInput::Input;
  bool keeps_grad_output = true;  ///< W reads the incoming gradient itself, unless it is quantized
  bool operation = false;         ///< TE has it as a basic operation, and not as a module
  bool delays = true;             ///< TE can delay its weight gradient
  bool raises_on_empty_queue = true;  ///< TE raises if W finds nothing queued, else it returns
  BiasGradientMade bias_gradient =
      BiasGradientMade::WithWeight;  ///< in TE, if the weight's is delayed
  /// The column of the gradient contract that holds its cells; nullopt if only its parts have
  /// cells.
  std::optional<ModuleKind> contract_column = ModuleKind::Linear;
};

/// One row a kind, in the order of the enumerators.
inline constexpr std::array kModuleKindFacts{
    ModuleKindFacts{.kind = ModuleKind::Linear, .name = "linear"},
    ModuleKindFacts{.kind = ModuleKind::GroupedLinear,
                    .name = "grouped-linear",
                    .grouped = true,
                    .kept_input = KeptInput::InputAndSizes,
                    .raises_on_empty_queue = false,
                    .bias_gradient = BiasGradientMade::WithWeightSplit,
                    .contract_column = ModuleKind::GroupedLinear},
    ModuleKindFacts{.kind = ModuleKind::LayerNormLinear,
                    .name = "layernorm-linear",
                    .norm = true,
                    .kept_input = KeptInput::Made,
                    .contract_column = ModuleKind::LayerNormLinear},
    ModuleKindFacts{.kind = ModuleKind::LayerNormMlp,
                    .name = "layernorm-mlp",
                    .makeup = Makeup::Mlp,
                    .norm = true,
                    .kept_input = KeptInput::Made,
                    .contract_column = ModuleKind::LayerNormMlp},
    ModuleKindFacts{.kind = ModuleKind::GroupedMlp,
                    .name = "grouped-mlp",
                    .makeup = Makeup::Mlp,
                    .grouped = true,
                    .kept_input = KeptInput::Made,
                    .keeps_grad_output = false,  // its fused kernels are quantized only
                    .operation = true,
                    .raises_on_empty_queue = false,
                    .bias_gradient = BiasGradientMade::WithBackward,
                    .contract_column = ModuleKind::GroupedMlp},
    ModuleKindFacts{.kind = ModuleKind::Attention,
                    .name = "attention",
                    .makeup = Makeup::Attention,
                    .kept_input = KeptInput::InputAndMade},
    ModuleKindFacts{.kind = ModuleKind::TransformerLayer,
                    .name = "transformer-layer",
                    .makeup = Makeup::Modules,
                    .kept_input = KeptInput::Made,
                    .contract_column = std::nullopt},
    ModuleKindFacts{.kind = ModuleKind::MoeLayer,
                    .name = "moe-layer",
                    .makeup = Makeup::Modules,
                    .norm = true,
                    .router = true,
                    .kept_input = KeptInput::Made,
                    .contract_column = std::nullopt},
    ModuleKindFacts{.kind = ModuleKind::GroupedLinearOp,
                    .name = "grouped-linear-op",
                    .grouped = true,
                    .kept_input = KeptInput::InputAndSizes,
                    .operation = true,
                    .raises_on_empty_queue = false,
                    .bias_gradient = BiasGradientMade::WithBackward,
                    .contract_column = ModuleKind::GroupedLinearOp},
    ModuleKindFacts{.kind = ModuleKind::BasicLinearOp,
                    .name = "basic-linear-op",
                    .operation = true,
                    .delays = false,
                    .raises_on_empty_queue = false,
                    .bias_gradient = BiasGradientMade::WithBackward,
                    .contract_column = ModuleKind::GroupedLinearOp},
};

/// Every kind, in the order of the enumerators.
inline constexpr std::array kModuleKinds = [] {
  std::array<ModuleKind, kModuleKindFacts.size()> kinds{};
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i] = kModuleKindFacts[i].kind;
  return kinds;
}();

static_assert([] {
  for (std::size_t i = 0; i < kModuleKinds.size(); ++i) {
    if (kModuleKinds[i] != static_cast<ModuleKind>(i)) return false;
  }
  return true;
}());

[[nodiscard]] constexpr const ModuleKindFacts& facts_of(ModuleKind kind) {
  return kModuleKindFacts[as_index(kind)];
}

/// "linear", "layernorm-mlp".
[[nodiscard]] constexpr std::string_view name_of(ModuleKind kind) {
  return facts_of(kind).name;
}

/// nullopt if the word names no kind.
[[nodiscard]] constexpr std::optional<ModuleKind> module_kind_named(std::string_view word) {
  const auto found = std::find_if(kModuleKinds.begin(), kModuleKinds.end(),
                                  [&](ModuleKind kind) { return name_of(kind) == word; });
  return found == kModuleKinds.end() ? std::nullopt : std::optional(*found);
}

[[nodiscard]] constexpr bool is_grouped(ModuleKind kind) {
  return facts_of(kind).grouped;
}
[[nodiscard]] constexpr bool has_norm(ModuleKind kind) {
  return facts_of(kind).norm;
}
[[nodiscard]] constexpr bool is_one_product(ModuleKind kind) {
  return facts_of(kind).makeup == Makeup::OneProduct;
}
[[nodiscard]] constexpr bool is_mlp(ModuleKind kind) {
  return facts_of(kind).makeup == Makeup::Mlp;
}
[[nodiscard]] constexpr bool is_attention(ModuleKind kind) {
  return facts_of(kind).makeup == Makeup::Attention;
}
[[nodiscard]] constexpr bool has_router(ModuleKind kind) {
  return facts_of(kind).router;
}
/// Whether SwiGLU lies between its two products.
[[nodiscard]] constexpr bool has_swiglu(ModuleKind kind) {
  return is_mlp(kind) || has_router(kind);
}
[[nodiscard]] constexpr bool has_two_weights(ModuleKind kind) {
  return has_swiglu(kind) || is_attention(kind);
}
/// Whether it is several modules of a framework, each of which has a kind of its own. capo runs it
/// as one layer.
[[nodiscard]] constexpr bool is_made_of_modules(ModuleKind kind) {
  return facts_of(kind).makeup == Makeup::Modules;
}
/// Whether attention stands in front of its MLP or its experts. Each half has a norm in front and a
/// residual sum behind.
[[nodiscard]] constexpr bool has_two_halves(ModuleKind kind) {
  return is_made_of_modules(kind) && !has_router(kind);
}

}  // namespace capo
