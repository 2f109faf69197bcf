// The inventory of a layer: its parameters, the tensors that it reads, makes and keeps, its
// products and its exchanges, all of them of one rank and one microbatch.
//
//   layernorm-mlp, sequence 4096, hidden 8192, ffn 28672, bf16, tensor_parallel 8
//     normed rows       kept    [512, 8192] x 2
//     gate and up       kept    [4096, 7168] x 2
//     activated rows    kept    [4096, 3584] x 2
//
// A layer keeps from F to B the tensors that Megatron-LM's layers keep with TransformerEngine's
// fused norms, rotary embedding, flash attention and SwiGLU: a norm its input and the inverse
// deviation of each row, a product its input, attention q, k, v, its output and a logsumexp, SwiGLU
// its input. The input of a layer is its static input, and not listed among the kept.
// bench/gpu/layer_bytes.py runs such a layer in PyTorch and compares.
//
// A delayed weight gradient reads inputs of products and gradients that came into them. These
// gradients are as large as tensors that B has done with, and are taken to lie in their place;
// beyond those stands what is `Left`: the rows that come back to the experts. Workspaces, dropout
// and biases are not counted, nor is what backward makes again under recompute and drops at once.
//
// Tested by inventory_test.cpp.

#pragma once

#include "core/base/result.h"
#include "core/model/configuration.h"
#include "core/model/module_kinds.h"
#include "core/model/recipe.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo {

enum class TensorUse : std::uint8_t {
  Parameter,
  Input,   ///< of the layer
  Output,  ///< of the layer
  Kept,    ///< from F to B, and to W if that is apart
  Left,    ///< by B for a W that is apart
};

/// "parameter", "input", "output", "kept", "left".
[[nodiscard]] std::string_view name_of(TensorUse use);

struct LayerTensor {
  std::string_view name;
  TensorUse use = TensorUse::Kept;
  std::vector<std::int64_t> shape;
  std::int64_t width = 2;        ///< bytes of an element; of no meaning if there is a recipe
  bool of_experts = false;       ///< a parameter of which a token uses top_k of all experts' shares
  Recipe recipe = Recipe::None;  ///< how it is quantized, along its columns, for W

  [[nodiscard]] std::int64_t elements() const;
  [[nodiscard]] std::int64_t bytes() const;
};

/// A product of `rows` rows with a weight, or, in groups, with a weight for each group.
struct LayerProduct {
  std::string_view name;
  std::int64_t rows = 0;
  std::int64_t in = 0;
  std::int64_t out = 0;
};

/// Whether a recipe quantizes the operands of the product: those of a router stay as they are.
[[nodiscard]] bool is_quantized(const LayerProduct& product);

/// The products of queries with keys and of those with values, half of which a causal mask skips.
struct CoreAttention {
  std::int64_t queries = 0;  ///< of all sequences of the microbatch on this rank
  std::int64_t keys = 0;     ///< of one sequence, on all ranks
  std::int64_t heads = 0;
  std::int64_t qk_size = 0;
  std::int64_t value_size = 0;
};

/// The copies of a weight: for both directions, or for forward alone.
enum class WeightCopies : std::uint8_t { Both, Forward };

/// Bytes of quantized copies of a weight of out x in.
[[nodiscard]] std::int64_t weight_copy_bytes(Recipe recipe, WeightCopies copies, std::int64_t out,
                                             std::int64_t in);

struct Inventory {
  std::vector<LayerTensor> tensors;  ///< in the order in which forward meets them
  std::vector<LayerProduct> products;
  std::optional<CoreAttention> attention;
  std::int64_t dispatched_bytes = 0;  ///< rows that a rank sends to experts; they come back too
  std::int64_t gathered_bytes = 0;    ///< that tensor parallelism brings from other ranks in F

  [[nodiscard]] std::int64_t bytes(TensorUse use) const;
  /// Bytes of quantized copies of the weights of its products, the router's excepted.
  [[nodiscard]] std::int64_t quantized_weights(Recipe recipe, WeightCopies copies) const;
  [[nodiscard]] std::int64_t parameters() const;
};

/// Whether the inventory of a module of this kind follows from a configuration: it is an MLP, or
/// made of modules.
[[nodiscard]] constexpr bool follows_from_configuration(ModuleKind kind) {
  return is_mlp(kind) || is_made_of_modules(kind);
}

/// The MLP of a module that does not say which: that of experts if its kind or configuration has
/// some.
[[nodiscard]] MlpKind usual_mlp(const ModelConfiguration& configuration, ModuleKind kind);

/// The types of a layer's tensors: of those between modules, and how operands are quantized.
struct LayerTypes {
  DataType between = DataType::Bf16;
  Recipe recipe = Recipe::None;

  friend bool operator==(const LayerTypes&, const LayerTypes&) = default;
};

/// Bytes that a weight gradient reads of an operand: the operand, or a quantized copy.
[[nodiscard]] std::int64_t operand_bytes(const LayerTypes& types, std::int64_t rows,
                                         std::int64_t columns);

/// The inventory of a module whose kind follows from a configuration that has no fault. The error
/// is the member of the configuration that is undeclared.
[[nodiscard]] Result<Inventory, std::string> inventory_of(const ModelConfiguration& configuration,
                                                          ModuleKind kind, MlpKind mlp,
                                                          const LayerTypes& types);

/// Sizes of an MLP by itself. Grouped, its rows are those of the experts.
struct MlpSizes {
  std::int64_t rows = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;
};

/// Bytes that an MLP keeps from F to B, beside its input: normed rows or a copy, and a number of
/// each row, that norm's or the row's share.
[[nodiscard]] std::int64_t kept_by_mlp(const MlpSizes& sizes, const LayerTypes& types);

/// Sizes of an attention by itself.
struct AttentionSizes {
  std::int64_t rows = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
};

/// Bytes that an attention keeps from F to B, beside its input: q, k and v, its output, which the
/// product behind it reads (quantized: a copy as well), and a logarithm of each row and head.
[[nodiscard]] std::int64_t kept_by_attention(const AttentionSizes& sizes, const LayerTypes& types);

/// Parameters of a whole model.
struct ParameterCounts {
  std::int64_t total = 0;
  std::int64_t active = 0;     ///< of a token: of its experts only those that it is sent to
  std::int64_t embedding = 0;  ///< of the table of the input; the output layer has as many
};

/// The error is the member that is undeclared.
[[nodiscard]] Result<ParameterCounts, std::string> parameter_counts(
    const ModelConfiguration& configuration);

}  // namespace capo
