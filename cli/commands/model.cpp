// `capo model NAME`: the model.json of a model that is published, and what follows from it.
//
//   capo model --list
//   capo model deepseek-v3 --set expert_parallel=8 > model.json
//   capo model model.json --format text
//
// The first form of output is a file for --model of other commands. Text and JSON list the
// inventory of each module: parameters, tensors that are kept, products. Tested by
// tests/cli/model_test.cpp.

#include "cli/commands/commands.h"
#include "cli/options/choice.h"
#include "cli/options/command_error.h"
#include "cli/options/environment_options.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "core/base/index.h"
#include "core/base/nearest.h"
#include "core/model/derive.h"
#include "core/model/inventory.h"
#include "core/model/ready_models.h"
#include "core/text/model_printer.h"
#include "core/text/model_reader.h"
#include "core/text/number.h"
#include "core/timeline/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace capo::cli {

namespace {

using Tree = nlohmann::ordered_json;

enum class ModelFormat { Model, Text, Json };

struct ModelRequest {
  std::string name;
  bool list = false;
  std::vector<ConfigurationMember> members;
  std::optional<Recipe> recipe;  ///< in place of the model's own
  ModuleKind kind = ModuleKind::TransformerLayer;
  std::int32_t ranks = 0;  ///< 0: the file does not say which layer is where
  std::int32_t chunks = 1;
  ModelFormat format = ModelFormat::Model;
  std::string output = "-";
};

// A module of a configured model, and its inventory or the member that is undeclared.
struct Row {
  const Module* module = nullptr;
  MlpKind mlp = MlpKind::Dense;
  Result<Inventory, std::string> inventory;
};

std::string models_text() {
  std::string text;
  for (const ReadyModel& model : ready_models()) {
    text += fmt::format("{:<14}{}\n", model.name, model.title);
  }
  return text;
}

std::vector<std::string_view> names_of_models() {
  std::vector<std::string_view> names;
  for (const ReadyModel& model : ready_models()) names.push_back(model.name);
  return names;
}

// The kinds of modules that a configuration tells.
Words<ModuleKind> told_kinds() {
  Words<ModuleKind> words;
  for (const ModuleKind kind : kModuleKinds) {
    if (follows_from_configuration(kind)) words.push_back({std::string(name_of(kind)), kind});
  }
  return words;
}

bool has_both_mlps(const ModelConfiguration& of, ModuleKind kind) {
  return is_made_of_modules(kind) && kind != ModuleKind::MoeLayer && of.experts &&
         of.dense_layers > 0;
}

// The layers of a stage, one after the other; the first stages have one more where they do not
// divide evenly. Stage s is chunk s / ranks of rank s % ranks.
std::vector<std::int32_t> stage_of_layers(const ModelConfiguration& of, std::int32_t stage,
                                          std::int32_t stages) {
  const std::int64_t all = *of.layers;
  const std::int64_t each = all / stages;
  const std::int64_t more = all % stages;
  const std::int64_t first = stage * each + std::min<std::int64_t>(stage, more);
  std::vector<std::int32_t> modules;
  for (std::int64_t i = first; i < first + each + (stage < more ? 1 : 0); ++i) {
    modules.push_back(i < of.dense_layers ? 0 : 1);
  }
  return modules;
}

ModuleTable modules_of(const ModelRequest& request, const ModelConfiguration& of) {
  ModuleTable table;
  if (!has_both_mlps(of, request.kind)) {
    table.list.push_back({.name = "layer", .kind = request.kind});
    table.layers = {{{0}}};
    return table;
  }
  table.list.push_back({.name = "dense", .kind = request.kind, .mlp = MlpKind::Dense});
  table.list.push_back({.name = "experts", .kind = request.kind, .mlp = MlpKind::Experts});
  if (request.ranks == 0) {
    table.layers = {{{1}}};
    return table;
  }
  for (std::int32_t rank = 0; rank < request.ranks; ++rank) {
    auto& chunks = table.layers.emplace_back();
    for (std::int32_t chunk = 0; chunk < request.chunks; ++chunk) {
      chunks.push_back(
          stage_of_layers(of, chunk * request.ranks + rank, request.ranks * request.chunks));
    }
  }
  return table;
}

std::string comment_of(const ReadyModel& model) {
  return fmt::format("{}; sizes: {}; {}", model.title, model.source, model.division);
}

void refuse_too_few_layers(const ModelRequest& request, const ModelConfiguration& of) {
  const std::int64_t stages = std::int64_t{request.ranks} * request.chunks;
  if (stages <= of.layers.value_or(0)) return;
  throw CLI::ValidationError(
      "--pp", fmt::format("with --vp makes {} stages, but there are {} layers", stages,
                          of.layers.value_or(0)));
}

// A recipe that does not quantize has no weights to keep quantized.
ModelConfiguration configuration_of(const ModelRequest& request, const ReadyModel& ready) {
  ModelConfiguration of = ready.configuration;
  if (!request.recipe) return of;
  of.recipe = *request.recipe;
  of.weight_cache = quantizes(*request.recipe) ? std::optional(WeightCache::Device) : std::nullopt;
  return of;
}

// The file that stands for the name, with the members that were set.
Result<ModelFile, CommandError> ready_file(const ModelRequest& request, const ReadyModel& ready) {
  const Limits limits;
  const auto file_with = [&](const ModuleTable& modules) -> Result<ModelFile, CommandError> {
    Source source{
        .name = request.name,
        .text = with_members(
            print_configured_model(comment_of(ready), configuration_of(request, ready), modules),
            request.members)};
    auto model = read_model(source.text, limits);
    if (!model) return CommandError(RefusedInput{std::move(source), model.error()});
    return ModelFile{.source = std::move(source), .model = *std::move(model)};
  };
  // Members that were set decide which modules there are.
  const auto sizes = file_with({});
  if (!sizes) return sizes.error();
  refuse_too_few_layers(request, *sizes->model.configuration);
  return file_with(modules_of(request, *sizes->model.configuration));
}

std::vector<Row> rows_of(const Model& model) {
  std::vector<Row> rows;
  for (const Module& module : model.modules.list) {
    if (!module.kind || !follows_from_configuration(*module.kind)) continue;
    const MlpKind mlp = module.mlp.value_or(usual_mlp(*model.configuration, *module.kind));
    if (!module.dtype) {
      rows.push_back({&module, mlp, std::string("dtype")});
    } else {
      rows.push_back({&module, mlp,
                      inventory_of(*model.configuration, *module.kind, mlp,
                                   {*module.dtype, recipe_of(module)})});
    }
  }
  return rows;
}

std::string shape_words(const LayerTensor& tensor) {
  const std::string shape = fmt::format("[{}]", fmt::join(tensor.shape, ", "));
  if (quantizes(tensor.recipe)) return fmt::format("{} in {}", shape, name_of(tensor.recipe));
  return fmt::format("{} x {}", shape, tensor.width);
}

std::string_view use_words(TensorUse use) {
  switch (use) {
    case TensorUse::Kept:
      return "kept from F to B";
    case TensorUse::Left:
      return "left for a delayed W";
    default:
      return name_of(use);
  }
}

std::string inventory_text(const Row& row) {
  const std::string name = fmt::format("\n{} ({})", row.module->name, name_of(*row.module->kind));
  if (!row.inventory) {
    return fmt::format("{}: `configuration.{}` is undeclared\n", name, row.inventory.error());
  }
  std::vector<std::vector<std::string>> cells{{"tensor", "bytes", "use", "shape x bytes"}};
  for (const LayerTensor& tensor : row.inventory->tensors) {
    cells.push_back({std::string(tensor.name), byte_words(tensor.bytes()),
                     std::string(use_words(tensor.use)), shape_words(tensor)});
  }
  for (const TensorUse use : {TensorUse::Parameter, TensorUse::Kept, TensorUse::Left}) {
    cells.push_back(
        {"all", byte_words(row.inventory->bytes(use)), std::string(use_words(use)), ""});
  }
  return fmt::format("{}, a rank and a microbatch\n{}", name, table(cells, 2));
}

double billions(std::int64_t count) {
  return static_cast<double>(count) / 1e9;
}

std::string text_of(const ModelFile& file) {
  const auto counts = parameter_counts(*file.model.configuration);
  std::string text =
      counts ? fmt::format(
                   "{}: {:.2f} billion parameters, {:.2f} billion of them for a token; {:.2f} "
                   "billion are an embedding\n",
                   file.source.name, billions(counts->total), billions(counts->active),
                   billions(counts->embedding))
             : fmt::format("{}: `configuration.{}` is undeclared, so parameters are not counted\n",
                           file.source.name, counts.error());
  for (const Row& row : rows_of(file.model)) text += inventory_text(row);
  return text;
}

Tree tensors_json(const Inventory& inventory) {
  Tree list = Tree::array();
  for (const LayerTensor& tensor : inventory.tensors) {
    Tree one{{"name", tensor.name}, {"use", name_of(tensor.use)}, {"shape", tensor.shape}};
    if (quantizes(tensor.recipe)) {
      one["recipe"] = name_of(tensor.recipe);
    } else {
      one["width"] = tensor.width;
    }
    one["bytes"] = tensor.bytes();
    list.push_back(std::move(one));
  }
  return list;
}

Tree products_json(const Inventory& inventory) {
  Tree list = Tree::array();
  for (const LayerProduct& product : inventory.products) {
    list.push_back(
        {{"name", product.name}, {"rows", product.rows}, {"in", product.in}, {"out", product.out}});
  }
  return list;
}

Tree row_json(const Row& row) {
  Tree json{{"name", row.module->name},
            {"kind", name_of(*row.module->kind)},
            {"mlp", name_of(row.mlp)},
            {"lacks", nullptr}};
  if (!row.inventory) {
    json["lacks"] = "configuration." + row.inventory.error();
    return json;
  }
  json["dtype"] = name_of(*row.module->dtype);
  json["recipe"] = name_of(recipe_of(*row.module));
  json["bytes"] = {{"input", row.inventory->bytes(TensorUse::Input)},
                   {"output", row.inventory->bytes(TensorUse::Output)},
                   {"activations", row.inventory->bytes(TensorUse::Kept)},
                   {"operands", row.inventory->bytes(TensorUse::Left)},
                   {"weight", row.inventory->bytes(TensorUse::Parameter)}};
  json["parameters"] = row.inventory->parameters();
  json["tensors"] = tensors_json(*row.inventory);
  json["products"] = products_json(*row.inventory);
  return json;
}

std::string json_of(const ModelFile& file) {
  Tree json{{"schema", 1}, {"name", file.source.name}, {"parameters", nullptr}};
  if (const auto counts = parameter_counts(*file.model.configuration)) {
    json["parameters"] = {
        {"total", counts->total}, {"active", counts->active}, {"embedding", counts->embedding}};
  }
  json["modules"] = Tree::array();
  for (const Row& row : rows_of(file.model)) json["modules"].push_back(row_json(row));
  return json.dump(1) + '\n';
}

std::string render(const ModelFile& file, ModelFormat format) {
  if (format == ModelFormat::Model) return file.source.text;
  return format == ModelFormat::Text ? text_of(file) : json_of(file);
}

bool looks_like_a_file(const std::string& name) {
  return name == "-" || name.find('/') != std::string::npos || name.ends_with(".json");
}

// A file has its own modules and sizes, so nothing is set in it.
void refuse_changes_of_a_file(const ModelRequest& request) {
  if (!request.members.empty()) {
    throw CLI::ValidationError("--set", "is for models by name; write the member into the file");
  }
  if (request.recipe) {
    throw CLI::ValidationError("--recipe", "is for models by name; write `recipe` into the file");
  }
  if (request.ranks != 0) throw CLI::ValidationError("--pp", "is for models by name");
}

Result<ModelFile, CommandError> file_of(const ModelRequest& request) {
  if (const ReadyModel* ready = ready_model_named(request.name)) return ready_file(request, *ready);
  if (!looks_like_a_file(request.name)) {
    const auto names = names_of_models();
    throw CLI::ValidationError(
        "NAME", fmt::format("there is no model `{}`; {}", request.name,
                            did_you_mean(request.name, names, "`capo model --list` lists them")));
  }
  refuse_changes_of_a_file(request);
  auto file = read_model_file(request.name, {});
  if (file && !file->model.configuration) {
    throw CLI::ValidationError("NAME", request.name + " has no `configuration`");
  }
  return file;
}

int print_model(const ModelRequest& request) {
  if (request.list) return exit_code_after(write_stdout(models_text()));
  if (request.name.empty()) throw CLI::RequiredError("the name of a model, or --list");
  const auto file = file_of(request);
  if (!file) return refuse(file.error());
  return exit_code_after(write_output(request.output, render(*file, request.format)));
}

ConfigurationMember member_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw CLI::ValidationError("--set", "takes a member and a value, expert_parallel=8");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

}  // namespace

Run add_model(CLI::App& command) {
  command.footer(
      "Example: capo model deepseek-v3 --set expert_parallel=8 -o model.json && capo check "
      "step.order --plan te --model model.json");
  auto request = std::make_shared<ModelRequest>();
  command.add_option("NAME", request->name,
                     "A model that --list lists, or a model file with a `configuration`");
  command.add_flag("--list", request->list, "List the models that there are");
  command
      .add_option_function<std::vector<std::string>>(
          "--set",
          [request](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) request->members.push_back(member_of(text));
          },
          "A member of the configuration, sequence=8192; repeatable")
      ->allow_extra_args(false);
  add_choice(command, "--recipe", request->recipe,
             words_of({Recipe::None, Recipe::Delayed, Recipe::Current, Recipe::Block, Recipe::Mxfp8,
                       Recipe::Nvfp4}),
             "How products quantize their operands, in place of the model's own recipe");
  add_choice(command, "--kind", request->kind, told_kinds(),
             "What a layer of an order is: a whole layer, its half with experts, or an MLP");
  command
      .add_option("--pp", request->ranks,
                  "Pipeline ranks over which the layers are spread, in stages that go around "
                  "them; where layers differ, the file then says which is where")
      ->check(CLI::Range(1, 65536));
  command.add_option("--vp", request->chunks, "Chunks of each rank")
      ->check(CLI::Range(1, 65536))
      ->needs("--pp")
      ->capture_default_str();
  add_choice(
      command, "--format", request->format,
      {{"model", ModelFormat::Model}, {"text", ModelFormat::Text}, {"json", ModelFormat::Json}},
      "model (a file for --model), or the inventory of its modules as text or json");
  command.add_option("-o,--output", request->output, "Where to write; - is standard output")
      ->capture_default_str();
  return [request] { return print_model(*request); };
}

}  // namespace capo::cli
