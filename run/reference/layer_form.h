// The shape of a layer in float64, its parameters, what it is given and saves, and which of its
// roundings could go either way: what layer_reference.h speaks of.
//
// Tested by tests/run/reference/.

#pragma once

#include "core/model/model.h"
#include "run/reference/rounder.h"

#include <compare>
#include <cstdint>
#include <vector>

namespace capo::run::reference {

enum class Rounding : std::uint8_t { Exact, AsStored };

// Some roundings could as well go the other way.
//
//   1 + 2^-8 in bf16   lies between 1 and 1 + 2^-7, as far from both: a sum in fp32 that is off by
//                      its last bit comes out as either
//
// An engine adds in fp32 and in an order of its own, and tensor cores cut off what they add, so the
// number that it rounds is not float64's to the last bit. Each of n additions is off by at most
// 2^-23 of a partial sum, either way; n of them come to about 2^-23 of the sum of the terms'
// absolute values, and four times that is what is called near. Where a value is that near to the
// middle between two numbers of its type, both are right, and they are one unit in the last place
// apart: up to 2^-7 in bf16, more than an error's bound if one row of a tensor outweighs all
// others. Tested by tests/run/reference/other_ways_test.cpp.

/// A tensor that a module writes to memory.
enum class Place : std::uint8_t {
  Normed,
  First,  ///< the first product, or the only one
  FirstBiased,
  Active,  ///< what is between two products: of SwiGLU, or of attention
  Second,
  SecondBiased,
  Logits,    ///< of a router, like the next five
  Combined,  ///< the sum of a token's experts and its input
  GradLogits,
  GradRouted,  ///< of the norm's output, by way of the logits
  GradRows,    ///< of what an expert reads
  GradSum,     ///< of the input, by way of the norm and of the sum
  GradActive,
  GradMiddle,
  GradNormed,
  GradInput,
};

struct Edge {
  Place place = Place::First;
  std::int64_t row = 0;
  std::int64_t column = 0;

  friend auto operator<=>(const Edge&, const Edge&) = default;
};

/// A value's error is so much of the sum of the absolute values of its terms, at most.
inline constexpr double kNear = 0x1p-21;

struct Edges {
  std::vector<Edge> other_way;  ///< these are rounded to the second nearest
  bool look = false;            ///< `near` is wanted; it costs every product once more
  std::vector<Edge> near = {};  ///< found, in the order of places, rows and columns
};

/// The shape of a layer and its parts. Every kind has one but a transformer layer, whose halves
/// have one each.
struct LayerForm {
  ModuleKind kind = ModuleKind::Linear;
  DataType type = DataType::Bf16;
  std::int64_t tokens = 0;
  std::int64_t hidden = 0;  ///< columns of the input
  std::int64_t ffn = 0;     ///< columns of the output of a product, or of the middle of an MLP
  std::int64_t groups = 1;  ///< 1 for kinds that have no groups
  std::int64_t top_k = 0;   ///< groups that a token chooses, with a router; else 0
  std::int64_t heads = 0;   ///< of an attention, like the next three
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t sequence = 0;  ///< rows that read each other; there are whole sequences only
  bool bias = false;          ///< each product has one
  bool half =
      false;  ///< of a transformer layer: a norm in front of it, and the residual sum behind
  bool scale_bias = false;       ///< in a grouped-linear-op a scale of each row multiplies the bias
  Coding coding = Coding::None;  ///< where roundings are AsStored
  /// Those of products are what coded_weights() makes of them, for the direction that is asked for.
  bool weights_are_coded = false;
};

/// Contiguous; those that the form does not have are empty. An MLP's first product has 2 * ffn
/// columns, gate and linear; an attention's has the queries of all heads, then the keys and then
/// the values of all kv heads. The same for gradients.
struct LayerWeights {
  std::vector<double> norm_weight;  ///< (hidden), of layernorm-linear, layernorm-mlp and moe-layer
  std::vector<double> norm_bias;    ///< (hidden), likewise
  std::vector<double> router;       ///< (groups, hidden), with a router
  std::vector<double> first;        ///< (groups, out, in)
  std::vector<double> first_bias;   ///< (groups, out)
  std::vector<double> second;       ///< (groups, hidden, ffn), of an MLP; of an attention
                                    ///< (hidden, heads * head_dim)
  std::vector<double> second_bias;  ///< (groups, hidden)
};

/// Tensors that come with a microbatch.
struct LayerSide {
  std::vector<std::int64_t> sizes;    ///< rows of each group; empty: all rows are one group
  std::vector<double> probabilities;  ///< one a row of a grouped-mlp
  std::vector<double> scales;         ///< one a row if scale_bias
  std::vector<std::int64_t> choices;  ///< of a router, token by token; empty: float64 chooses
};

/// Rows beyond the sum of the sizes are zero here and stand for nothing.
struct LayerForward {
  std::vector<double> output;         ///< (tokens, columns of the output)
  std::vector<double> normed;         ///< (tokens, hidden), with a norm
  std::vector<double> middle;         ///< of two products: behind the first and its bias
  std::vector<double> active;         ///< of two products: what the second reads
  std::vector<double> logits;         ///< (tokens, groups), of a router
  std::vector<std::int64_t> choices;  ///< (tokens, top_k), those that were taken
  std::int64_t refused = 0;           ///< tokens whose choices are not admissible
};

struct LayerBackward {
  std::vector<double> grad_input;  ///< (tokens, hidden)
  /// Sums of the absolute values of its terms behind a norm, where they nearly cancel; else its
  /// own.
  std::vector<double> grad_input_magnitudes;
  LayerWeights grads;  ///< of this microbatch; never rounded, whoever adds them rounds
  /// Sums of the absolute values of the terms, for norms and biases, which are sums over rows, and
  /// for a router, whose choices have a gradient that is a sum over columns.
  LayerWeights magnitudes;
  std::vector<double> grad_probabilities;
  std::vector<double> probability_magnitudes;  ///< sums of the absolute values of their terms
  std::vector<double> grad_scales;
};

/// A backward may be asked for a part of it: with weights of real sizes the other part is what
/// takes the time.
enum class Wanted : std::uint8_t {
  All,
  InputGradient,    ///< and those of norms, probabilities and scales, without products and biases
  WeightGradients,  ///< those of products and biases, and no more
};

// The reference tells the kinds apart by itself: a fact that is wrong in core/model/module_kinds.h
// would otherwise be wrong here as well, and agree with what ran.
[[nodiscard]] inline bool begins_with_norm(const LayerForm& form) {
  return form.half || form.kind == ModuleKind::LayerNormLinear ||
         form.kind == ModuleKind::LayerNormMlp || form.kind == ModuleKind::MoeLayer;
}

[[nodiscard]] inline bool routes(ModuleKind kind) {
  return kind == ModuleKind::MoeLayer;
}

[[nodiscard]] inline bool attends(ModuleKind kind) {
  return kind == ModuleKind::Attention;
}

[[nodiscard]] inline bool has_two_products(ModuleKind kind) {
  return kind == ModuleKind::LayerNormMlp || kind == ModuleKind::GroupedMlp || attends(kind) ||
         routes(kind);
}

[[nodiscard]] inline bool has_groups(ModuleKind kind) {
  return kind == ModuleKind::GroupedLinear || kind == ModuleKind::GroupedLinearOp ||
         kind == ModuleKind::GroupedMlp;
}

/// So many rows make a result of theirs together, which depends on no other row's operands.
[[nodiscard]] inline std::int64_t rows_of_one_result(const LayerForm& form) {
  return attends(form.kind) ? form.sequence : 1;
}

/// Rows that a tensor has for each token: as many as choices, or one.
[[nodiscard]] inline std::int64_t rows_of_token(const LayerForm& form, Place place) {
  using enum Place;
  const bool of_experts = place == First || place == Active || place == Second ||
                          place == GradActive || place == GradMiddle || place == GradRows;
  return routes(form.kind) && of_experts ? form.top_k : 1;
}

/// Columns of what the layer makes.
[[nodiscard]] inline std::int64_t output_columns(const LayerForm& form) {
  return has_two_products(form.kind) ? form.hidden : form.ffn;
}

}  // namespace capo::run::reference
