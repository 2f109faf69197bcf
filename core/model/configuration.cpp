#include "core/model/configuration.h"

#include <fmt/format.h>

namespace capo {

namespace {

using Size = ModelConfiguration::Size;
using Fault = std::optional<ConfigurationFault>;

// "`heads` is 40, no multiple of `tensor_parallel`, 16".
Fault undivided(std::string_view member, const Size& size, std::string_view by,
                std::int64_t parts) {
  if (!size || *size % parts == 0) return std::nullopt;
  return ConfigurationFault{member,
                            fmt::format("is {}, no multiple of `{}`, {}", *size, by, parts)};
}

Fault above(std::string_view member, const Size& size, std::string_view whole, const Size& most) {
  if (!size || !most || *size <= *most) return std::nullopt;
  return ConfigurationFault{member, fmt::format("is {}, more than `{}`, {}", *size, whole, *most)};
}

Fault uneven_sequence(const ModelConfiguration& of) {
  const std::int64_t parts = saturated_product(of.context_parallel, of.tensor_parallel);
  if (!of.sequence || *of.sequence % parts == 0) return std::nullopt;
  return ConfigurationFault{
      "sequence",
      fmt::format("is {}, no multiple of `context_parallel` times `tensor_parallel`, {}",
                  *of.sequence, parts)};
}

}  // namespace

std::string_view name_of(Recompute recompute) {
  return recompute == Recompute::None ? "none" : "full";
}

std::string_view name_of(MlpKind mlp) {
  return mlp == MlpKind::Dense ? "dense" : "experts";
}

std::optional<ConfigurationFault> fault_of(const ModelConfiguration& of) {
  const bool sized = of.head_size || of.latent || !of.heads;
  const Fault faults[] = {
      above("dense_layers", of.dense_layers, "layers", of.layers),
      above("top_k", of.top_k, "experts", of.experts),
      sized ? std::nullopt : undivided("hidden", of.hidden, "heads", *of.heads),
      of.kv_heads ? undivided("heads", of.heads, "kv_heads", *of.kv_heads) : std::nullopt,
      undivided("heads", of.heads, "tensor_parallel", of.tensor_parallel),
      undivided("kv_heads", of.kv_heads, "tensor_parallel", of.tensor_parallel),
      undivided("ffn", of.ffn, "tensor_parallel", of.tensor_parallel),
      undivided("expert_ffn", of.expert_ffn, "expert_tensor_parallel", of.expert_tensor()),
      undivided("experts", of.experts, "expert_parallel", of.expert_parallel),
      uneven_sequence(of),
  };
  for (const Fault& fault : faults) {
    if (fault) return fault;
  }
  return std::nullopt;
}

}  // namespace capo
