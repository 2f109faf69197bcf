#include "core/model/ready_models.h"

#include <algorithm>
#include <array>

namespace capo {

namespace {

const std::array<ReadyModel, 5> kModels{{
    {.name = "deepseek-v3",
     .title = "DeepSeek-V3, 671B with 37B active",
     .source = "huggingface.co/deepseek-ai/DeepSeek-V3 config.json",
     .division = "64 ranks share the experts, a sequence has 4096 tokens, and products are of FP8 "
                 "with blocks of 1x128 and of weights 128x128, as in sections 3.2, 4.2 and 3.3 of "
                 "arXiv:2412.19437",
     .configuration = {.layers = 61,
                       .dense_layers = 3,
                       .hidden = 7168,
                       .ffn = 18432,
                       .heads = 128,
                       .latent = LatentAttention{.q_rank = 1536,
                                                 .kv_rank = 512,
                                                 .nope_size = 128,
                                                 .rope_size = 64,
                                                 .value_size = 128},
                       .experts = 256,
                       .top_k = 8,
                       .expert_ffn = 2048,
                       .shared_experts = 1,
                       .vocabulary = 129280,
                       .sequence = 4096,
                       .micro_batch = 1,
                       .expert_parallel = 64,
                       .dtype = DataType::Bf16,
                       .recipe = Recipe::Block,
                       .weight_cache = WeightCache::Device}},
    {.name = "qwen3-235b",
     .title = "Qwen3-235B-A22B, 235B with 22B active",
     .source = "huggingface.co/Qwen/Qwen3-235B-A22B config.json",
     .division = "8 ranks share the experts and a sequence has 4096 tokens, to begin with",
     .configuration = {.layers = 94,
                       .hidden = 4096,
                       .heads = 64,
                       .kv_heads = 4,
                       .head_size = 128,
                       .qk_norm = true,
                       .experts = 128,
                       .top_k = 8,
                       .expert_ffn = 1536,
                       .vocabulary = 151936,
                       .sequence = 4096,
                       .micro_batch = 1,
                       .expert_parallel = 8,
                       .dtype = DataType::Bf16}},
    {.name = "mixtral-8x7b",
     .title = "Mixtral 8x7B, 46.7B with 12.9B active",
     .source = "huggingface.co/mistralai/Mixtral-8x7B-v0.1 config.json",
     .division = "8 ranks share the experts and a sequence has 4096 tokens, to begin with",
     .configuration = {.layers = 32,
                       .hidden = 4096,
                       .heads = 32,
                       .kv_heads = 8,
                       .head_size = 128,
                       .experts = 8,
                       .top_k = 2,
                       .expert_ffn = 14336,
                       .vocabulary = 32000,
                       .sequence = 4096,
                       .micro_batch = 1,
                       .expert_parallel = 8,
                       .dtype = DataType::Bf16}},
    {.name = "llama3-70b",
     .title = "Llama 3 70B",
     .source = "huggingface.co/meta-llama/Meta-Llama-3-70B config.json",
     .division = "8 ranks share each product, and a sequence has 8192 tokens, to begin with",
     .configuration = {.layers = 80,
                       .hidden = 8192,
                       .ffn = 28672,
                       .heads = 64,
                       .kv_heads = 8,
                       .head_size = 128,
                       .vocabulary = 128256,
                       .sequence = 8192,
                       .micro_batch = 1,
                       .tensor_parallel = 8,
                       .dtype = DataType::Bf16}},
    {.name = "tiny",
     .title = "a small model with experts, for tests",
     .source = "made up",
     .division = "2 ranks share the experts",
     .configuration = {.layers = 4,
                       .dense_layers = 1,
                       .hidden = 64,
                       .ffn = 192,
                       .heads = 4,
                       .kv_heads = 2,
                       .head_size = 16,
                       .experts = 4,
                       .top_k = 2,
                       .expert_ffn = 32,
                       .shared_experts = 1,
                       .vocabulary = 256,
                       .sequence = 32,
                       .micro_batch = 2,
                       .expert_parallel = 2,
                       .dtype = DataType::Bf16}},
}};

}  // namespace

std::span<const ReadyModel> ready_models() {
  return kModels;
}

const ReadyModel* ready_model_named(std::string_view name) {
  const auto* found = std::find_if(kModels.begin(), kModels.end(),
                                   [&](const ReadyModel& model) { return model.name == name; });
  return found == kModels.end() ? nullptr : &*found;
}

}  // namespace capo
