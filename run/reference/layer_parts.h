// The parts of layers in float64: products of groups of rows, bias, LayerNorm, SwiGLU, attention
// and routers, and their gradients.
//
// It holds formulas only. layer_reference.cpp says which parts a layer has and where its values are
// rounded, and checks that every vector has the size that is read here. All tensors are contiguous,
// by rows. Rows that are in no group stay zero in every result and add nothing to a sum; with a
// norm every row is in a group.
//
// Products are in layer_products.cpp, operands of codes in coded_operands.cpp. Tested by
// finite_differences_test.cpp, layer_by_hand_test.cpp, layer_products_test.cpp and
// attention_parts_test.cpp in tests/run/reference/.

#pragma once

#include "run/reference/rounder.h"

#include <cstdint>
#include <vector>

namespace capo::run::reference {

using Values = std::vector<double>;

/// The epsilon of every norm.
inline constexpr float kEpsilon = 1e-5F;

/// y = x w^T: x (rows, in), y (rows, out), and a w (out, in) for each group.
struct Product {
  std::vector<std::int64_t> group;  ///< by row that exists; these rows are the first
  std::int64_t rows = 0;            ///< so many rows have memory
  std::int64_t groups = 0;
  std::int64_t in = 0;
  std::int64_t out = 0;
};

/// The rows of each group, ascending.
[[nodiscard]] std::vector<std::vector<std::int64_t>> rows_of_groups(const Product& p);
[[nodiscard]] Values output_of(const Product& p, const Values& x, const Values& w);
[[nodiscard]] Values input_gradient(const Product& p, const Values& dy, const Values& w);
[[nodiscard]] Values weight_gradient(const Product& p, const Values& dy, const Values& x);

// Operands of products of codes, as the numbers that these stand for (coded_operands.cpp):
//
//   Block, (1, 100, 449)   ->   the scale is 2, and so (1, 96, 448): of 8 numbers between 64 and
//                               128 the codes have every eighth, and 224.5 is nearest to 224
//
/// x (rows, columns), in blocks of columns.
[[nodiscard]] Values coded_rows(Coding coding, const Values& x, std::int64_t columns);
/// The rows of a product, in blocks of the rows of each group, wherever these lie.
[[nodiscard]] Values coded_columns(Coding coding, const Product& p, const Values& x,
                                   std::int64_t columns);
/// w (groups, out, in), in blocks of what a forward sums over, and of what the gradient of an input
/// does.
[[nodiscard]] Values coded_along_in(Coding coding, const Product& p, const Values& w);
[[nodiscard]] Values coded_along_out(Coding coding, const Product& p, const Values& w);

/// y + scale * bias, with a scale for each row and a bias (out) for each group; and its gradients.
[[nodiscard]] Values with_bias(const Product& p, Values y, const Values& bias,
                               const Values& scales);
[[nodiscard]] Values bias_gradient(const Product& p, const Values& dy, const Values& scales);
[[nodiscard]] Values scale_gradient(const Product& p, const Values& dy, const Values& bias);

struct NormGradients {
  Values input;
  Values weight;
  Values bias;
  // Sums of the absolute values of the terms of each.
  Values magnitudes;  ///< of `input`
  Values weight_magnitudes;
  Values bias_magnitudes;
};

[[nodiscard]] Values absolute(Values values);

/// y = xhat * weight + bias, where xhat = (x - mean) / sqrt(variance + epsilon), by rows, all of
/// which exist; as many columns as weights.
[[nodiscard]] Values norm_of(const Values& x, const Values& weight, const Values& bias);
[[nodiscard]] NormGradients norm_gradients(const Values& x, const Values& weight, const Values& dy);

struct SwigluGradients {
  Values middle;
  Values probabilities;
  Values magnitudes;  ///< sums of the absolute values of the terms of `probabilities`
};

/// y = silu(gate) * linear * probability, where a row of `middle` is gate and then linear.
/// `second`: the product that reads y.
[[nodiscard]] Values swiglu_of(const Product& second, const Values& middle,
                               const Values& probabilities);
[[nodiscard]] SwigluGradients swiglu_gradients(const Product& second, const Values& middle,
                                               const Values& probabilities, const Values& dy);

/// Rows of sequences, each `sequence` long but the last; 0: one sequence. A row of qkv is the
/// queries of the heads, then the keys and then the values of the kv heads.
struct Heads {
  std::int64_t rows = 0;
  std::int64_t sequence = 0;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 1;
};

struct AttentionGradients {
  Values qkv;
  /// Sums of the absolute values of the terms of `qkv`: a token that reads itself alone has a
  /// gradient of zero, which is a difference.
  Values magnitudes;
};

/// softmax(q k^T / sqrt(head_dim)) v, where a row reads its sequence up to itself.
[[nodiscard]] Values attention_of(const Heads& of, const Values& qkv);
/// The sizes that its errors are relative to: a probability is off by as much as its score, so each
/// term counts once, and as often again as the absolute values of the score's terms come to.
[[nodiscard]] Values attention_magnitudes(const Heads& of, const Values& qkv);
/// `y`: what the forward came to, as it was stored.
[[nodiscard]] AttentionGradients attention_gradients(const Heads& of, const Values& qkv,
                                                     const Values& y, const Values& dy);

/// Rows that choose `top_k` groups each; the choices of row r are number r * top_k and on.
struct Router {
  std::int64_t groups = 1;
  std::int64_t top_k = 1;
};

struct RouterGradients {
  Values logits;
  Values magnitudes;  ///< sums of the absolute values of the terms of `logits`
};

/// The groups of the greatest logits, of equal ones the lower first.
[[nodiscard]] std::vector<std::int64_t> greatest_of(const Router& of, const Values& logits);
/// Rows that cannot have made these choices, whatever their logits are between `least` and `most`:
/// a group stands before one whose logit is greater, or as great and of a lower group.
[[nodiscard]] std::int64_t refused_choices(const Router& of, const Values& least,
                                           const Values& most,
                                           const std::vector<std::int64_t>& choices);
/// The share of each choice's group in a softmax over all groups.
[[nodiscard]] Values probabilities_of(const Router& of, const Values& logits,
                                      const std::vector<std::int64_t>& choices);
/// `dy` is by choice: the gradients of the probabilities.
[[nodiscard]] RouterGradients router_gradients(const Router& of, const Values& logits,
                                               const std::vector<std::int64_t>& choices,
                                               const Values& dy);
/// Every row `times` times, one after the other; and the sums of as many rows.
[[nodiscard]] Values repeated(const Values& rows, std::int64_t columns, std::int64_t times);
[[nodiscard]] Values summed_up(const Values& rows, std::int64_t columns, std::int64_t times);

}  // namespace capo::run::reference
