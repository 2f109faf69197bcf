#include "core/text/model_parts.h"

#include "core/model/configuration.h"
#include "core/text/json_fields.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace capo {

namespace {

constexpr std::array kRecomputes{Recompute::None, Recompute::Full};

Read<double> read_factor(const JsonValue& value, std::string_view what) {
  return read_real(value, what, 1, 1e6);
}

constexpr std::array<JsonMember<LatentAttention>, 5> kLatent{{
    {"q_rank", put<&LatentAttention::q_rank, read_extent<1>>},
    {"kv_rank", put<&LatentAttention::kv_rank, read_extent<1>>},
    {"nope_size", put<&LatentAttention::nope_size, read_extent<1>>},
    {"rope_size", put<&LatentAttention::rope_size, read_extent<1>>},
    {"value_size", put<&LatentAttention::value_size, read_extent<1>>},
}};

Read<LatentAttention> read_latent(const JsonValue& value, std::string_view what) {
  if (auto refusal = refuse_other_object(value, what, keys_of(kLatent), kModelSchema)) {
    return std::move(*refusal);
  }
  LatentAttention read;
  if (auto refusal = read_members(value, "latent.", kLatent, read)) return std::move(*refusal);
  for (const auto& member : kLatent) {
    if (value.find(member.key)) continue;
    return malformed(value.span(), fmt::format("{} has no `{}`", what, member.key));
  }
  return read;
}

using Of = ModelConfiguration;

constexpr std::array<JsonMember<ModelConfiguration>, 27> kConfigurationMembers{{
    {"layers", put<&Of::layers, read_extent<1>>},
    {"dense_layers", put<&Of::dense_layers, read_extent<0>>},
    {"hidden", put<&Of::hidden, read_extent<1>>},
    {"ffn", put<&Of::ffn, read_extent<1>>},
    {"heads", put<&Of::heads, read_extent<1>>},
    {"kv_heads", put<&Of::kv_heads, read_extent<1>>},
    {"head_size", put<&Of::head_size, read_extent<1>>},
    {"latent", put<&Of::latent, read_latent>},
    {"qk_norm", put<&Of::qk_norm, read_boolean>},
    {"experts", put<&Of::experts, read_extent<1>>},
    {"top_k", put<&Of::top_k, read_extent<1>>},
    {"expert_ffn", put<&Of::expert_ffn, read_extent<1>>},
    {"shared_experts", put<&Of::shared_experts, read_extent<0>>},
    {"vocabulary", put<&Of::vocabulary, read_extent<1>>},
    {"tied_embedding", put<&Of::tied_embedding, read_boolean>},
    {"sequence", put<&Of::sequence, read_extent<1>>},
    {"micro_batch", put<&Of::micro_batch, read_extent<1>>},
    {"capacity_factor", put<&Of::capacity_factor, read_factor>},
    {"tensor_parallel", put<&Of::tensor_parallel, read_extent<1>>},
    {"expert_parallel", put<&Of::expert_parallel, read_extent<1>>},
    {"expert_tensor_parallel", put<&Of::expert_tensor_parallel, read_extent<1>>},
    {"context_parallel", put<&Of::context_parallel, read_extent<1>>},
    {"recipe", put<&Of::recipe, read_choice<kRecipes>>},
    {"weight_cache", put<&Of::weight_cache, read_choice<kWeightCaches>>},
    {"dtype", read_type<ModelConfiguration>},
    {"recompute", put<&Of::recompute, read_choice<kRecomputes>>},
    {"comment",
     [](const JsonValue&, std::string_view, ModelConfiguration&) -> std::optional<Refusal> {
       return std::nullopt;
     }},
}};

}  // namespace

Read<ModelConfiguration> read_configuration(const JsonValue& value) {
  constexpr std::string_view kWhat = "`configuration`";
  if (auto refusal =
          refuse_other_object(value, kWhat, keys_of(kConfigurationMembers), kModelSchema)) {
    return std::move(*refusal);
  }
  ModelConfiguration read;
  if (auto refusal = read_members(value, "configuration.", kConfigurationMembers, read)) {
    return std::move(*refusal);
  }
  if (const auto fault = fault_of(read)) {
    const auto member = value.find(fault->member);
    return malformed(member ? member->span() : value.span(),
                     fmt::format("`configuration.{}` {}", fault->member, fault->why));
  }
  return read;
}

}  // namespace capo
