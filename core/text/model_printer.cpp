#include "core/text/model_printer.h"

#include "core/base/assert.h"
#include "core/base/index.h"
#include "core/text/number.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <optional>

namespace capo {

namespace {

using Json = nlohmann::ordered_json;

void write(Json& json, const char* key, const std::optional<std::int64_t>& value) {
  if (value) json[key] = *value;
}
void write_unless(Json& json, const char* key, std::int64_t value, std::int64_t usual) {
  if (value != usual) json[key] = value;
}

Json latent_json(const LatentAttention& latent) {
  return {{"q_rank", latent.q_rank},
          {"kv_rank", latent.kv_rank},
          {"nope_size", latent.nope_size},
          {"rope_size", latent.rope_size},
          {"value_size", latent.value_size}};
}

void write_model(Json& json, const ModelConfiguration& of) {
  write(json, "layers", of.layers);
  write_unless(json, "dense_layers", of.dense_layers, 0);
  write(json, "hidden", of.hidden);
  write(json, "ffn", of.ffn);
  write(json, "heads", of.heads);
  write(json, "kv_heads", of.kv_heads);
  write(json, "head_size", of.head_size);
  if (of.latent) json["latent"] = latent_json(*of.latent);
  if (of.qk_norm) json["qk_norm"] = true;
  write(json, "experts", of.experts);
  write(json, "top_k", of.top_k);
  write(json, "expert_ffn", of.expert_ffn);
  write_unless(json, "shared_experts", of.shared_experts, 0);
  write(json, "vocabulary", of.vocabulary);
  if (of.tied_embedding) json["tied_embedding"] = true;
}

// Degrees are printed in any case, since they are what a user changes.
void write_training(Json& json, const ModelConfiguration& of) {
  write(json, "sequence", of.sequence);
  write(json, "micro_batch", of.micro_batch);
  if (of.capacity_factor != 1) json["capacity_factor"] = of.capacity_factor;
  json["tensor_parallel"] = of.tensor_parallel;
  if (of.experts || of.expert_parallel != 1) json["expert_parallel"] = of.expert_parallel;
  write(json, "expert_tensor_parallel", of.expert_tensor_parallel);
  json["context_parallel"] = of.context_parallel;
  if (of.dtype) json["dtype"] = name_of(*of.dtype);
  if (of.recipe) json["recipe"] = name_of(*of.recipe);
  if (of.weight_cache) json["weight_cache"] = name_of(*of.weight_cache);
  json["recompute"] = name_of(of.recompute);
}

Json modules_json(const std::vector<Module>& list) {
  Json json = Json::object();
  for (const Module& module : list) {
    Json one = Json::object();
    if (module.kind) one["kind"] = name_of(*module.kind);
    if (module.mlp) one["mlp"] = name_of(*module.mlp);
    json[module.name] = std::move(one);
  }
  return json;
}

Json layers_json(const ModuleTable& modules) {
  const auto& ranks = modules.layers;
  if (ranks.size() == 1 && ranks[0].size() == 1 && ranks[0][0].size() == 1) {
    return modules.list[as_index(ranks[0][0][0])].name;
  }
  Json json = Json::array();
  for (const auto& chunks : ranks) {
    Json of_rank = Json::array();
    for (const auto& layers : chunks) {
      Json of_chunk = Json::array();
      for (const std::int32_t layer : layers)
        of_chunk.push_back(modules.list[as_index(layer)].name);
      of_rank.push_back(std::move(of_chunk));
    }
    json.push_back(std::move(of_rank));
  }
  return json;
}

double rounded(double value) {
  return read_number(fmt::format("{:.6g}", value))->value;
}

void state(Json& object, const char* name, const std::optional<double>& value) {
  if (value) object[name] = rounded(*value);
}

// States it too, but what was there goes if there is no value: it was of another measurement.
void state_or_drop(Json& object, const char* name, const std::optional<double>& value) {
  object.erase(name);
  state(object, name, value);
}

// Makes the object of that name if there is none: null would turn into one by itself, but not if
// memory runs out.
Json& object_in(Json& json, const char* name) {
  return json.emplace(name, Json::object()).first.value();
}

}  // namespace

std::string print_configured_model(std::string_view comment,
                                   const ModelConfiguration& configuration,
                                   const ModuleTable& modules) {
  Json json{{"schema", 1}, {"comment", comment}};
  Json& of = json["configuration"] = Json::object();
  write_model(of, configuration);
  write_training(of, configuration);
  json["modules"] = modules_json(modules.list);
  if (!modules.layers.empty()) json["layers"] = layers_json(modules);
  return json.dump(2) + '\n';
}

std::string with_members(std::string_view model, std::span<const ConfigurationMember> members) {
  Json json = Json::parse(model, nullptr, false);
  CAPO_ASSERT(json.is_object() && json.contains("configuration"), "a model was printed");
  for (const ConfigurationMember& member : members) {
    Json value = Json::parse(member.value, nullptr, false);
    json["configuration"][member.key] = value.is_discarded() ? Json(member.value) : value;
  }
  return json.dump(2) + '\n';
}

std::string with_costs(std::string_view model, const MeasuredCosts& costs) {
  Json json = Json::parse(model, nullptr, false);
  CAPO_ASSERT(json.is_object(), "a model that was read is an object");
  for (const auto& [name, cost] : costs.modules) {
    Json& stated = object_in(json["modules"][name], "cost");
    state(stated, "forward", cost.forward);
    state(stated, "backward", cost.backward);
    state(stated, "weight", cost.weight);
    state(stated, "dispatch", cost.dispatch);
    state(stated, "combine", cost.combine);
    state(stated, "reduce", cost.reduce);
    state(stated, "autograd", cost.autograd);
    state(stated, "whole", cost.whole);
    state(stated, "fuse", cost.fuse);
    state(stated, "beside", cost.beside);
    state_or_drop(stated, "rest", cost.rest);
    state_or_drop(stated, "quantize_forward", cost.quantize_forward);
    state_or_drop(stated, "quantize_backward", cost.quantize_backward);
  }
  if (costs.transfer) {
    Json& stated = object_in(json, "transfer");
    state(stated, "latency", costs.transfer->latency);
    state(stated, "bandwidth", costs.transfer->bandwidth);
    if (costs.transfer->bytes) stated["bytes"] = *costs.transfer->bytes;
    state_or_drop(stated, "crowded", costs.transfer->crowded);
    state_or_drop(stated, "slowdown", costs.transfer->slowdown);
    stated.erase("ahead");
    if (costs.transfer->ahead) stated["ahead"] = *costs.transfer->ahead;
  }
  json.erase("paces");
  for (const double pace : costs.paces) json["paces"].push_back(rounded(pace));
  return json.dump(2) + "\n";
}

}  // namespace capo
