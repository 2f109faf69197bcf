#include "testing/model_text.h"

#include "core/base/index.h"
#include "core/text/action_token.h"
#include "core/text/model_parts.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <utility>

namespace capo::testing {

namespace {

using Json = nlohmann::ordered_json;

template <typename Number>
void add(Json& json, const char* key, const std::optional<Number>& value) {
  if (value) json[key] = *value;
}

template <typename Choice>
void add_name(Json& json, const char* key, const std::optional<Choice>& choice) {
  if (choice) json[key] = name_of(*choice);
}

// Prints only what differs from its default.
Json flags_of(const ModuleFlags& flags) {
  Json json = Json::object();
  for (const ModuleFlag& flag : kModuleFlags) {
    const bool value = flags.*flag.slot;
    if (value != ModuleFlags{}.*flag.slot) json[std::string(flag.key)] = value;
  }
  return json;
}

Json cost_json(const ModuleCost& cost) {
  Json json = Json::object();
  add(json, "forward", cost.forward);
  add(json, "backward", cost.backward);
  add(json, "weight", cost.weight);
  add(json, "dispatch", cost.dispatch);
  add(json, "combine", cost.combine);
  add(json, "reduce", cost.reduce);
  add(json, "autograd", cost.autograd);
  add(json, "rest", cost.rest);
  add(json, "quantize_forward", cost.quantize_forward);
  add(json, "quantize_backward", cost.quantize_backward);
  return json;
}

Json module_json(const Module& module) {
  Json json = Json::object();
  add_name(json, "kind", module.kind);
  add_name(json, "dtype", module.dtype);
  add_name(json, "recipe", module.recipe);
  add_name(json, "weight_cache", module.weight_cache);
  Json shape = Json::object();
  add(shape, "tokens", module.shape.tokens);
  add(shape, "hidden", module.shape.hidden);
  add(shape, "ffn", module.shape.ffn);
  add(shape, "groups", module.shape.groups);
  add(shape, "top_k", module.shape.top_k);
  add(shape, "heads", module.shape.heads);
  add(shape, "kv_heads", module.shape.kv_heads);
  add(shape, "head_dim", module.shape.head_dim);
  add(shape, "sequence", module.shape.sequence);
  if (!shape.empty()) json["shape"] = std::move(shape);
  Json bytes = Json::object();
  add(bytes, "input", module.bytes.input);
  add(bytes, "output", module.bytes.output);
  add(bytes, "activations", module.bytes.activations);
  add(bytes, "operands", module.bytes.operands);
  add(bytes, "weight", module.bytes.weight);
  add(bytes, "quantized_weight", module.bytes.quantized_weight);
  if (!bytes.empty()) json["bytes"] = std::move(bytes);
  if (Json cost = cost_json(module.cost); !cost.empty()) json["cost"] = std::move(cost);
  add_name(json, "splits", module.splits);
  if (Json flags = flags_of(module.flags); !flags.empty()) json["flags"] = std::move(flags);
  if (module.main_grad) {
    json["main_grad"] = {{"shape", module.main_grad->shape},
                         {"strides", module.main_grad->strides}};
  }
  const Module usual;
  if (module.calls != usual.calls) json["calls"] = module.calls;
  if (module.output_position != usual.output_position) {
    json["output_position"] = module.output_position;
  }
  if (module.grad_buckets != usual.grad_buckets) json["grad_buckets"] = module.grad_buckets;
  return json;
}

// Prints the modules by name, in a table for every rank and chunk as it is declared.
Json layers_json(const ModuleTable& table) {
  Json ranks = Json::array();
  for (const auto& rank : table.layers) {
    Json chunks = Json::array();
    for (const auto& chunk : rank) {
      Json layers = Json::array();
      for (const std::int32_t layer : chunk) {
        layers.push_back(table.list[as_index(layer)].name);
      }
      chunks.push_back(std::move(layers));
    }
    ranks.push_back(std::move(chunks));
  }
  return ranks;
}

void add_plan(Json& json, const PlanOptions& plan) {
  add_name(json, "plan", plan.kind);
  if (plan.aliases) {
    Json operands = Json::array();
    if (plan.aliases->input) operands.push_back("input");
    if (plan.aliases->grad_output) operands.push_back("grad-output");
    json["alias"] = std::move(operands);
  }
  add(json, "budget", plan.budget);
  if (plan.warm_up_keeps_outputs) json["warm_up_keeps_outputs"] = true;
  if (plan.paged_stash) json["paged_stash"] = true;
  if (!plan.model_chunks.empty()) json["model_chunks"] = plan.model_chunks;
}

void add_environment(Json& json, const Environment& environment) {
  add_name(json, "communicators", environment.communicators);
  add_name(json, "comm_init", environment.comm_init);
  add_name(json, "transfers", environment.transfers);
  add_name(json, "p2p", environment.p2p);
  if (environment.ep_overlap) json["ep_overlap"] = true;
  if (environment.ep_slots != EpOverlap{}) {
    json["ep_slots"] = {{"multi_token_prediction", environment.ep_slots.multi_token_prediction},
                        {"early_release", environment.ep_slots.early_release},
                        {"delayed_weights", environment.ep_slots.delayed_weights}};
  }
  add_name(json, "architecture", environment.architecture);
  if (environment.cublaslt) {
    json["cublaslt"] = std::to_string(*environment.cublaslt / 100) + "." +
                       std::to_string(*environment.cublaslt % 100);
  }
  if (!environment.amax_group.empty()) json["amax_group"] = environment.amax_group;
  if (environment.weight_stream) json["weight_stream"] = *environment.weight_stream;
}

void add_placement(Json& json, const Model& model) {
  if (model.topology == Topology::Custom) {
    json["topology"] = {{"stages", model.stages}};
  } else {
    add_name(json, "topology", model.topology);
  }
}

void add_transfer(Json& json, const TransferCost& cost) {
  Json transfer = Json::object();
  add(transfer, "latency", cost.latency);
  add(transfer, "bandwidth", cost.bandwidth);
  add(transfer, "bytes", cost.bytes);
  if (!transfer.empty()) json["transfer"] = std::move(transfer);
}

Json group_json(const CollectiveGroup& group) {
  Json json{{"name", group.name}, {"members", group.members}};
  for (const Kind action : group.actions) json["actions"].push_back(word_of(action));
  for (const auto& [action, stream] : group.streams) {
    json["streams"][std::string(word_of(action))] = stream;
  }
  return json;
}

}  // namespace

std::string model_text(const Model& model) {
  Json json{{"schema", 1}};
  add_placement(json, model);
  add_environment(json, model.environment);
  add_plan(json, model.plan);
  if (!model.modules.list.empty()) {
    Json modules = Json::object();
    for (const Module& module : model.modules.list) modules[module.name] = module_json(module);
    json["modules"] = std::move(modules);
    if (!model.modules.layers.empty()) json["layers"] = layers_json(model.modules);
  }
  for (const CollectiveGroup& group : model.groups) json["groups"].push_back(group_json(group));
  add_transfer(json, model.transfer);
  return json.dump() + "\n";
}

std::string model_text(const CheckOptions& declared) {
  return model_text(Model{.environment = declared.environment,
                          .modules = declared.modules,
                          .groups = declared.groups,
                          .plan = declared.plan});
}

}  // namespace capo::testing
