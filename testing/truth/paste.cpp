#include <capo/testing/truth/paste.h>

#include <capo/core/model/module_flags.h>
#include <capo/core/text/order_printer.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <utility>

namespace capo::testing {

namespace {

using Json = nlohmann::ordered_json;

template <typename Number>
void add(Json& json, const char* key, const std::optional<Number>& value) {
  if (value) json[key] = *value;
}

// What differs from its default.
Json flags_of(const ModuleFlags& flags) {
  Json json = Json::object();
  for (const ModuleFlag& flag : kModuleFlags) {
    const bool value = flags.*flag.slot;
    if (value != ModuleFlags{}.*flag.slot) json[std::string(flag.key)] = value;
  }
  return json;
}

Json module_json(const Module& module) {
  Json json = Json::object();
  if (module.kind) json["kind"] = name_of(*module.kind);
  if (module.dtype) json["dtype"] = name_of(*module.dtype);
  Json shape = Json::object();
  add(shape, "tokens", module.shape.tokens);
  add(shape, "hidden", module.shape.hidden);
  add(shape, "ffn", module.shape.ffn);
  add(shape, "groups", module.shape.groups);
  if (!shape.empty()) json["shape"] = std::move(shape);
  if (module.splits) json["splits"] = name_of(*module.splits);
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

// By name; a table for every rank and chunk as it is declared.
Json layers_json(const ModuleTable& table) {
  Json ranks = Json::array();
  for (const auto& rank : table.layers) {
    Json chunks = Json::array();
    for (const auto& chunk : rank) {
      Json layers = Json::array();
      for (const std::int32_t layer : chunk) {
        layers.push_back(table.list[static_cast<std::size_t>(layer)].name);
      }
      chunks.push_back(std::move(layers));
    }
    ranks.push_back(std::move(chunks));
  }
  return ranks;
}

void add_plan(Json& json, const PlanOptions& plan) {
  if (plan.kind) json["plan"] = name_of(*plan.kind);
  if (plan.aliases) {
    Json operands = Json::array();
    if (plan.aliases->input) operands.push_back("input");
    if (plan.aliases->grad_output) operands.push_back("grad-output");
    json["alias"] = std::move(operands);
  }
  add(json, "budget", plan.budget);
  if (!plan.model_chunks.empty()) json["model_chunks"] = plan.model_chunks;
}

}  // namespace

std::string model_text(const CheckOptions& declared) {
  Json json{{"schema", 1}};
  if (declared.environment.weight_stream) json["weight_stream"] = true;
  add_plan(json, declared.plan);
  Json modules = Json::object();
  for (const Module& module : declared.modules.list) modules[module.name] = module_json(module);
  json["modules"] = std::move(modules);
  json["layers"] = layers_json(declared.modules);
  return json.dump() + "\n";
}

std::string paste_text(const TruthCase& of, std::string_view device) {
  return fmt::format(
      "cat > case.order <<'END'\n{}END\ncat > case.model <<'END'\n{}END\n"
      "capo run case.order --model case.model --device {} --graphs {} --replays {} --seed {} "
      "--sizes {}{}\n",
      print_order_file(of.input.schedule), model_text(of.declared), device,
      of.graphs == Granularity::PerStep ? "per-step" : "per-action", of.replays, of.seed,
      run::name_of(of.sizes), of.made == Made::Sound ? "" : " --unchecked");
}

}  // namespace capo::testing
