// A configuration says how large a transformer is, what a microbatch of it is, and how it is
// divided over ranks: the numbers that its authors publish and that its training is started with.
//
//   {"hidden": 4096, "heads": 32, "kv_heads": 8, "experts": 8, "top_k": 2, "expert_ffn": 14336,
//    "sequence": 4096, "micro_batch": 1, "expert_parallel": 8, "dtype": "bf16"}
//
// The parameters, bytes and products of a layer follow from it (inventory.h). Its degrees are 1
// if they are left out, and every other size is undeclared, never guessed. MLPs are gated
// (SwiGLU), norms are RMSNorms, products have no bias, and attention is causal. With tensor
// parallelism the sequence is divided outside the products too, as Megatron-LM needs it for
// experts. Tested by configuration_test.cpp.

#pragma once

#include "core/model/data_type.h"
#include "core/model/recipe.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace capo {

/// DeepSeek's multi-head latent attention: queries, and keys with values, go through a narrow
/// product each. Sizes are those of one head.
struct LatentAttention {
  std::int64_t q_rank = 0;
  std::int64_t kv_rank = 0;
  std::int64_t nope_size = 0;  ///< columns of queries and keys without a position
  std::int64_t rope_size = 0;  ///< columns with one; of keys, all heads share them
  std::int64_t value_size = 0;

  friend bool operator==(const LatentAttention&, const LatentAttention&) = default;
};

enum class Recompute : std::uint8_t {
  None,
  Full,  ///< a layer keeps its input, and backward makes the rest again
};

/// "none", "full".
[[nodiscard]] std::string_view name_of(Recompute recompute);

/// The second half of a layer.
enum class MlpKind : std::uint8_t { Dense, Experts };

/// "dense", "experts".
[[nodiscard]] std::string_view name_of(MlpKind mlp);

struct ModelConfiguration {
  using Size = std::optional<std::int64_t>;

  // The model.
  Size layers;
  std::int64_t dense_layers = 0;  ///< the first so many have no experts
  Size hidden;
  Size ffn;  ///< of the MLP of a dense layer
  Size heads;
  Size kv_heads;   ///< nullopt: as many as heads
  Size head_size;  ///< nullopt: hidden / heads
  std::optional<LatentAttention> latent;
  bool qk_norm = false;  ///< queries and keys of each head are normed
  Size experts;
  Size top_k;       ///< experts of a token
  Size expert_ffn;  ///< of one expert
  std::int64_t shared_experts = 0;
  Size vocabulary;
  bool tied_embedding = false;  ///< the output layer has the embedding's parameter
  // The microbatch.
  Size sequence;
  Size micro_batch;            ///< sequences of a microbatch
  double capacity_factor = 1;  ///< rows that a rank's experts get, over the average
  // The ranks.
  std::int64_t tensor_parallel = 1;
  std::int64_t expert_parallel = 1;
  Size expert_tensor_parallel;  ///< nullopt: tensor_parallel, as in Megatron-LM
  std::int64_t context_parallel = 1;
  // The training.
  std::optional<DataType> dtype;
  std::optional<Recipe> recipe;             ///< of modules that declare none
  std::optional<WeightCache> weight_cache;  ///< likewise
  Recompute recompute = Recompute::None;

  [[nodiscard]] std::int64_t expert_tensor() const {
    return expert_tensor_parallel.value_or(tensor_parallel);
  }

  friend bool operator==(const ModelConfiguration&, const ModelConfiguration&) = default;
};

/// A member that does not fit the others.
struct ConfigurationFault {
  std::string_view member;
  std::string why;  ///< goes on behind "`expert_parallel`"
};

/// nullopt if all that is divided divides evenly, and no part is larger than its whole.
[[nodiscard]] std::optional<ConfigurationFault> fault_of(const ModelConfiguration& configuration);

/// The product, or the largest number if it leaves 64 bits. Factors are not negative.
template <typename... Factors>
[[nodiscard]] constexpr std::int64_t saturated_product(Factors... factors) {
  std::int64_t product = 1;
  bool beyond = false;
  ((beyond = __builtin_mul_overflow(product, std::int64_t{factors}, &product) || beyond), ...);
  const bool nothing = ((factors == 0) || ...);
  if (nothing) return 0;
  return beyond ? INT64_MAX : product;
}
[[nodiscard]] constexpr std::int64_t saturated_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

}  // namespace capo
