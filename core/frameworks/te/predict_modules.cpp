// The errors that modules raise while make_graphed_callables() takes an order.

#include "core/frameworks/te/predict.h"
#include "core/frameworks/te/quantization.h"

#include "core/model/module_kinds.h"

#include <fmt/format.h>

#include <cmath>

namespace capo::te {

namespace {

// Asks each layer of a chunk in turn; a level of the table that speaks for all is asked once.
template <typename Ask>
std::optional<Prediction> first_of_layers(const Modules& modules, std::int32_t chunk, Ask ask) {
  const std::size_t layers = modules.table->layers_told_apart(modules.rank, chunk);
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const Module* module = modules.table->of(modules.rank, chunk, static_cast<std::int32_t>(layer));
    if (module == nullptr) continue;
    if (auto raised = ask(*module)) return raised;
  }
  return std::nullopt;
}

std::optional<Prediction> raised_by_autocast(const Module& module, const Environment& environment) {
  const Recipe recipe = recipe_of(module);
  if (runs(recipe, environment)) return std::nullopt;
  const bool asserts = recipe == Recipe::Nvfp4;  // which check_recipe_support() does not know
  return Prediction{.kind = asserts ? Kind::PyAssertionError : Kind::RuntimeErrorTe,
                    .step = Step::WarmUp,
                    .entry = {},
                    .reason = fmt::format("module `{}` quantizes by recipe {}: Device compute "
                                          "capability 10.0 or higher required",
                                          module.name, name_of(recipe))};
}

std::optional<Prediction> raised_by_bias(const Module& module, const Version& version) {
  if (!misses_bias_gradient(module, version)) return std::nullopt;
  // Recipe block takes the sum of the activations for the gradient, which PyTorch refuses as one of
  // another length.
  const bool blocks = recipe_of(module) == Recipe::Block;
  return Prediction{.kind = blocks ? Kind::TorchRuntimeError : Kind::PyAttributeError,
                    .step = Step::WarmUp,
                    .entry = {},
                    .reason = fmt::format("module `{}` takes the gradient of its bias from its "
                                          "delayed product, which has made none",
                                          module.name)};
}

std::optional<Prediction> raised_by_sizes(const Module& module, const Environment& environment) {
  if (!fetches_sizes(module, environment)) return std::nullopt;
  return Prediction{
      .kind = Kind::TorchRuntimeError,
      .step = Step::Capture,
      .entry = {},
      .reason = fmt::format("module `{}` fetches the sizes of its groups, since {}: "
                            "cudaErrorStreamCaptureUnsupported",
                            module.name, why_sizes_come_from_host(module, environment))};
}

// Walks an order, and asks at each forward and backward of a chunk.
template <typename Ask>
std::optional<Prediction> first_of_entries(const TeList& order, Ask ask) {
  for (std::size_t at = 0; at < order.entries.size(); ++at) {
    const double value = order.entries[at].value;
    if (!std::isfinite(value) || value == 0 || std::floor(value) != value) continue;
    if (std::abs(value) > INT32_MAX) continue;
    auto raised = ask(static_cast<std::int32_t>(std::abs(value)), value > 0);
    if (!raised) continue;
    raised->entry = at;
    return raised;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Prediction> predict_modules(const TeList& order, const Modules& modules,
                                          const Version& version) {
  const Environment& environment = *modules.environment;
  const auto warm_up = [&](std::int32_t chunk, bool forward) {
    return first_of_layers(modules, chunk, [&](const Module& module) {
      return forward ? raised_by_autocast(module, environment) : raised_by_bias(module, version);
    });
  };
  if (auto raised = first_of_entries(order, warm_up)) return raised;
  const auto capture = [&](std::int32_t chunk, bool forward) -> std::optional<Prediction> {
    if (!forward) return std::nullopt;
    return first_of_layers(
        modules, chunk, [&](const Module& module) { return raised_by_sizes(module, environment); });
  };
  return first_of_entries(order, capture);
}

Prediction earlier(Prediction list, const std::optional<Prediction>& module) {
  if (!module || (!list.accepts() && list.step < Step::WarmUp)) return list;
  if (list.accepts() || list.step > module->step) return *module;
  if (list.step < module->step || !list.entry || !module->entry) return list;
  return *module->entry < *list.entry ? *module : list;
}

}  // namespace capo::te
