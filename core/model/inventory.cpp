#include "core/model/inventory.h"

#include "core/base/assert.h"
#include "core/base/index.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

namespace capo {

namespace {

using Shape = std::vector<std::int64_t>;

constexpr std::int64_t kFloat = 4;
constexpr std::string_view kRouter = "router";
constexpr std::int64_t kIndex = 8;

struct Need {
  std::string_view member;
  ModelConfiguration::Size ModelConfiguration::*slot;
};
constexpr std::array<Need, 3> kOfAll{{{"hidden", &ModelConfiguration::hidden},
                                      {"sequence", &ModelConfiguration::sequence},
                                      {"micro_batch", &ModelConfiguration::micro_batch}}};
constexpr std::array<Need, 1> kOfAttention{{{"heads", &ModelConfiguration::heads}}};
constexpr std::array<Need, 1> kOfDense{{{"ffn", &ModelConfiguration::ffn}}};
constexpr std::array<Need, 3> kOfExperts{{{"experts", &ModelConfiguration::experts},
                                          {"top_k", &ModelConfiguration::top_k},
                                          {"expert_ffn", &ModelConfiguration::expert_ffn}}};

using Lack = std::optional<std::string>;

Lack first_lack(const ModelConfiguration& of, std::span<const Need> needs) {
  for (const Need& need : needs) {
    if (!(of.*need.slot)) return std::string(need.member);
  }
  return std::nullopt;
}

Lack lack_of(const ModelConfiguration& of, ModuleKind kind, MlpKind mlp) {
  if (auto lack = first_lack(of, kOfAll)) return lack;
  if (kind == ModuleKind::TransformerLayer) {
    if (auto lack = first_lack(of, kOfAttention)) return lack;
  }
  if (mlp == MlpKind::Experts) return first_lack(of, kOfExperts);
  return first_lack(of, kOfDense);
}

// Adds the inventory of one module to a list; every count is that of one rank and one microbatch.
class InventoryBuilder {
 public:
  // No member that is read may be undeclared.
  InventoryBuilder(const ModelConfiguration& of, const LayerTypes& types)
      : of_(of),
        wide_(element_bytes(types.between)),
        recipe_(types.recipe),
        hidden_(*of.hidden),
        gathered_(saturated_product(*of.sequence, *of.micro_batch) / of.context_parallel),
        tokens_(gathered_ / of.tensor_parallel) {}

  // Tokens that come out of a layer, or go in.
  void end(TensorUse use, std::int64_t rows) { add({name_of(use), use, {rows, hidden_}, wide_}); }

  void attention() {
    norm("attention norm", tokens_, recipe_);
    gather();
    if (of_.latent) {
      latent_attention(*of_.latent);
    } else {
      grouped_query_attention();
    }
  }

  void residual() { keep("residual", {tokens_, hidden_}, wide_); }

  void dense_mlp() {
    norm("mlp norm", tokens_, recipe_);
    gather();
    gated("fc1", "fc2", {gathered_, hidden_, *of_.ffn / of_.tensor_parallel}, 0);
  }

  void expert_mlp() {
    norm("mlp norm", tokens_, Recipe::None);  // the router does without quantized copies
    router();
    if (of_.shared_experts > 0) shared_experts();
    keep("order of the rows", {expert_rows()}, kIndex);
    keep_operand("dispatched tokens", {expert_rows(), hidden_});
    experts();
    left("gradient of the experts' output", {expert_rows(), hidden_});
    inventory_.dispatched_bytes = saturated_product(tokens_, *of_.top_k, hidden_, wide_);
  }

  void experts_alone() {
    keep_operand("copy of the input", {expert_rows(), hidden_});
    experts();
    left("gradient of the output", {expert_rows(), hidden_});
  }

  [[nodiscard]] std::int64_t tokens() const { return tokens_; }
  [[nodiscard]] std::int64_t expert_rows() const {
    const double rows = std::ceil(static_cast<double>(saturated_product(tokens_, *of_.top_k)) *
                                  of_.capacity_factor);
    return rows < 0x1p62 ? saturated_product(static_cast<std::int64_t>(rows), of_.expert_tensor())
                         : INT64_MAX;
  }

  Inventory take() && {
    if (of_.recompute == Recompute::Full) {
      for (LayerTensor& tensor : inventory_.tensors) {
        if (tensor.use == TensorUse::Kept) tensor.use = TensorUse::Left;
      }
    }
    return std::move(inventory_);
  }

 private:
  void add(LayerTensor tensor) { inventory_.tensors.push_back(std::move(tensor)); }
  void keep(std::string_view name, Shape shape, std::int64_t width) {
    add({name, TensorUse::Kept, std::move(shape), width});
  }
  // Keeps what a weight gradient reads.
  void keep_operand(std::string_view name, Shape shape) {
    add({name, TensorUse::Kept, std::move(shape), wide_, false, recipe_});
  }
  void left(std::string_view name, Shape shape) {
    add({name, TensorUse::Left, std::move(shape), wide_, false, recipe_});
  }
  void parameter(std::string_view name, Shape shape, bool of_experts = false) {
    add({name, TensorUse::Parameter, std::move(shape), wide_, of_experts});
  }
  void product(LayerProduct product) {
    parameter(product.name, {product.out, product.in});
    inventory_.products.push_back(product);
  }

  // Rows of other ranks come in before a pair of products, and sums of theirs after it.
  void gather() {
    const std::int64_t from_others =
        saturated_product(tokens_, of_.tensor_parallel - 1, hidden_, wide_);
    inventory_.gathered_bytes =
        saturated_sum(inventory_.gathered_bytes, saturated_product(2, from_others));
  }

  // A norm keeps its input, which is listed where it is made, and the inverse deviation of a row.
  void norm(std::string_view name, std::int64_t rows, Recipe recipe) {
    parameter(name, {hidden_});
    keep("inverse deviations", {rows}, kFloat);
    add({"normed rows", TensorUse::Kept, {rows, hidden_}, wide_, false, recipe});
  }

  void grouped_query_attention() {
    const std::int64_t heads = *of_.heads / of_.tensor_parallel;
    const std::int64_t kv = of_.kv_heads.value_or(*of_.heads) / of_.tensor_parallel;
    const std::int64_t size = of_.head_size.value_or(hidden_ / *of_.heads);
    const std::int64_t columns = saturated_product(heads + 2 * kv, size);
    product({"qkv", gathered_, hidden_, columns});
    if (of_.qk_norm) {
      parameter("q norm", {size});
      parameter("k norm", {size});
      keep("q and k before their norms", {gathered_, saturated_product(heads + kv, size)}, wide_);
      keep("inverse deviations of q and k", {gathered_, heads + kv}, kFloat);
    }
    keep("q, k and v", {gathered_, columns}, wide_);
    core_attention({gathered_, *of_.sequence, heads, size, size});
  }

  void latent_attention(const LatentAttention& latent) {
    const std::int64_t heads = *of_.heads / of_.tensor_parallel;
    const std::int64_t qk = latent.nope_size + latent.rope_size;
    product({"q down", tokens_, hidden_, latent.q_rank});
    product({"kv down", tokens_, hidden_, latent.kv_rank + latent.rope_size});
    keep("q and kv before their norms", {tokens_, latent.q_rank + latent.kv_rank}, wide_);
    keep("inverse deviations of q and kv", {tokens_, 2}, kFloat);
    parameter("q norm", {latent.q_rank});
    parameter("kv norm", {latent.kv_rank});
    keep_operand("normed q and kv", {tokens_, latent.q_rank + latent.kv_rank});
    product({"q up", gathered_, latent.q_rank, saturated_product(heads, qk)});
    product({"kv up", gathered_, latent.kv_rank,
             saturated_product(heads, latent.nope_size + latent.value_size)});
    keep("q, k and v", {gathered_, saturated_product(heads, 2 * qk + latent.value_size)}, wide_);
    core_attention({gathered_, *of_.sequence, heads, qk, latent.value_size});
  }

  void core_attention(const CoreAttention& core) {
    const std::int64_t columns = saturated_product(core.heads, core.value_size);
    keep("attention output", {gathered_, columns}, wide_);
    if (quantizes(recipe_)) keep_operand("attention output, quantized", {gathered_, columns});
    keep("logsumexp", {gathered_, core.heads}, kFloat);
    product({"projection", gathered_, columns, hidden_});
    inventory_.attention = core;
  }

  void router() {
    product({kRouter, tokens_, hidden_, *of_.experts});
    keep("router scores", {tokens_, *of_.experts}, kFloat);
    keep("experts of each token", {tokens_, *of_.top_k}, kIndex);
    keep("their shares", {tokens_, *of_.top_k}, kFloat);
  }

  void shared_experts() {
    gather();
    if (quantizes(recipe_)) keep_operand("normed rows, quantized", {tokens_, hidden_});
    const std::int64_t ffn = saturated_product(of_.shared_experts, *of_.expert_ffn);
    gated("shared fc1", "shared fc2", {gathered_, hidden_, ffn / of_.tensor_parallel}, 0);
  }

  void experts() {
    keep("share of each row", {expert_rows()}, kFloat);
    gated("experts' fc1", "experts' fc2",
          {expert_rows(), hidden_, *of_.expert_ffn / of_.expert_tensor()},
          *of_.experts / of_.expert_parallel);
  }

  // Two products and SwiGLU between them; `groups` is 0 if there are none.
  void gated(std::string_view first, std::string_view second, const MlpSizes& sizes,
             std::int64_t groups) {
    const std::int64_t ffn = sizes.ffn;
    const auto weight = [&](std::string_view name, std::int64_t out, std::int64_t in) {
      if (groups == 0) return parameter(name, {out, in});
      parameter(name, {groups, out, in}, true);
    };
    weight(first, saturated_product(2, ffn), hidden_);
    inventory_.products.push_back({first, sizes.rows, hidden_, saturated_product(2, ffn)});
    keep("gate and up", {sizes.rows, saturated_product(2, ffn)}, wide_);
    keep_operand("activated rows", {sizes.rows, ffn});
    weight(second, hidden_, ffn);
    inventory_.products.push_back({second, sizes.rows, ffn, hidden_});
  }

  const ModelConfiguration& of_;
  std::int64_t wide_;
  Recipe recipe_;
  std::int64_t hidden_;
  std::int64_t gathered_;  // tokens that the products of a rank read
  std::int64_t tokens_;    // those that lie on the rank between products
  Inventory inventory_;
};

}  // namespace

std::string_view name_of(TensorUse use) {
  constexpr std::array<std::string_view, 5> kNames{"parameter", "input", "output", "kept", "left"};
  return kNames[as_index(use)];
}

std::int64_t LayerTensor::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product = saturated_product(product, size);
  return product;
}

std::int64_t LayerTensor::bytes() const {
  if (!quantizes(recipe)) return saturated_product(elements(), width);
  return copy_bytes(recipe, {.rows = shape.front(), .columns = shape.back()});
}

std::int64_t Inventory::bytes(TensorUse use) const {
  std::int64_t sum = 0;
  for (const LayerTensor& tensor : tensors) {
    if (tensor.use == use) sum = saturated_sum(sum, tensor.bytes());
  }
  return sum;
}

std::int64_t weight_copy_bytes(Recipe recipe, WeightCopies copies, std::int64_t out,
                               std::int64_t in) {
  QuantizedCopy copy{.rows = out, .columns = in, .lines = CopyLines::Rows, .weight = true};
  const std::int64_t forward = copy_bytes(recipe, copy);
  if (copies == WeightCopies::Forward) return forward;
  copy.lines = CopyLines::Columns;
  return saturated_sum(forward, copy_bytes(recipe, copy));
}

bool is_quantized(const LayerProduct& product) {
  return product.name != kRouter;
}

std::int64_t Inventory::quantized_weights(Recipe recipe, WeightCopies copies) const {
  std::int64_t sum = 0;
  for (const LayerTensor& tensor : tensors) {
    if (tensor.use != TensorUse::Parameter || tensor.shape.size() < 2) continue;
    if (tensor.name == kRouter) continue;
    const std::size_t last = tensor.shape.size() - 1;
    const std::int64_t groups = last == 2 ? tensor.shape.front() : 1;
    const std::int64_t one =
        weight_copy_bytes(recipe, copies, tensor.shape[last - 1], tensor.shape[last]);
    sum = saturated_sum(sum, saturated_product(groups, one));
  }
  return sum;
}

std::int64_t Inventory::parameters() const {
  std::int64_t sum = 0;
  for (const LayerTensor& tensor : tensors) {
    if (tensor.use == TensorUse::Parameter) sum = saturated_sum(sum, tensor.elements());
  }
  return sum;
}

MlpKind usual_mlp(const ModelConfiguration& configuration, ModuleKind kind) {
  if (kind == ModuleKind::LayerNormMlp) return MlpKind::Dense;
  if (kind == ModuleKind::GroupedMlp || kind == ModuleKind::MoeLayer) return MlpKind::Experts;
  return configuration.experts ? MlpKind::Experts : MlpKind::Dense;
}

Result<Inventory, std::string> inventory_of(const ModelConfiguration& configuration,
                                            ModuleKind kind, MlpKind mlp, const LayerTypes& types) {
  CAPO_ASSERT(follows_from_configuration(kind),
              "only MLPs and what is made of modules have inventory");
  if (auto lack = lack_of(configuration, kind, mlp)) return *std::move(lack);
  InventoryBuilder builder(configuration, types);
  const bool grouped = kind == ModuleKind::GroupedMlp;
  const std::int64_t rows = grouped ? builder.expert_rows() : builder.tokens();
  builder.end(TensorUse::Input, rows);
  if (kind == ModuleKind::TransformerLayer) {
    builder.attention();
    builder.residual();
  }
  if (grouped) {
    builder.experts_alone();
  } else if (mlp == MlpKind::Experts) {
    builder.expert_mlp();
  } else {
    builder.dense_mlp();
  }
  builder.end(TensorUse::Output, rows);
  return std::move(builder).take();
}

std::int64_t operand_bytes(const LayerTypes& types, std::int64_t rows, std::int64_t columns) {
  if (quantizes(types.recipe)) return copy_bytes(types.recipe, {.rows = rows, .columns = columns});
  return saturated_product(rows, columns, element_bytes(types.between));
}

std::int64_t kept_by_mlp(const MlpSizes& sizes, const LayerTypes& types) {
  const std::int64_t wide = element_bytes(types.between);
  std::int64_t kept = saturated_product(sizes.rows, kFloat);
  for (const std::int64_t more : {operand_bytes(types, sizes.rows, sizes.hidden),
                                  saturated_product(sizes.rows, 2, sizes.ffn, wide),
                                  operand_bytes(types, sizes.rows, sizes.ffn)}) {
    kept = saturated_sum(kept, more);
  }
  return kept;
}

std::int64_t kept_by_attention(const AttentionSizes& sizes, const LayerTypes& types) {
  const std::int64_t wide = element_bytes(types.between);
  const std::int64_t columns = saturated_product(sizes.heads, sizes.head_dim);
  const auto of_heads = [&](std::int64_t heads) {
    return saturated_product(sizes.rows, heads, sizes.head_dim, 2 * wide);
  };
  std::int64_t kept = saturated_product(sizes.rows, sizes.heads, kFloat);
  const std::int64_t copy = quantizes(types.recipe) ? operand_bytes(types, sizes.rows, columns) : 0;
  for (const std::int64_t more : {of_heads(sizes.heads), of_heads(sizes.kv_heads), copy}) {
    kept = saturated_sum(kept, more);
  }
  return kept;
}

Result<ParameterCounts, std::string> parameter_counts(const ModelConfiguration& configuration) {
  if (!configuration.layers) return std::string("layers");
  if (!configuration.vocabulary) return std::string("vocabulary");
  ModelConfiguration whole = configuration;
  whole.tensor_parallel = whole.expert_parallel = whole.context_parallel = 1;
  whole.expert_tensor_parallel = 1;
  whole.sequence = whole.micro_batch = 1;
  const std::int64_t experts = whole.experts ? *whole.layers - whole.dense_layers : 0;
  const std::int64_t embedding = saturated_product(*whole.vocabulary, whole.hidden.value_or(0));
  const std::int64_t ends = saturated_sum(
      saturated_product(whole.tied_embedding ? 1 : 2, embedding), whole.hidden.value_or(0));
  ParameterCounts counts{.total = ends, .active = ends, .embedding = embedding};
  for (const auto& [mlp, layers] :
       {std::pair(MlpKind::Dense, *whole.layers - experts), std::pair(MlpKind::Experts, experts)}) {
    if (layers == 0) continue;
    const auto inventory = inventory_of(whole, ModuleKind::TransformerLayer, mlp, {});
    if (!inventory) return inventory.error();
    for (const LayerTensor& tensor : inventory->tensors) {
      if (tensor.use != TensorUse::Parameter) continue;
      const std::int64_t all = saturated_product(tensor.elements(), layers);
      counts.total = saturated_sum(counts.total, all);
      const std::int64_t used = tensor.of_experts ? all / *whole.experts * *whole.top_k : all;
      counts.active = saturated_sum(counts.active, used);
    }
  }
  return counts;
}

}  // namespace capo
