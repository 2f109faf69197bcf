// Weights of layers whose products read codes and whose module has a cache of weights, quantized
// once before a step, both ways. They belong to the run, as parameters do, and to no plan. Where a
// module has none, each forward quantizes them into a buffer of the plan (run/modules/coded.h).
//
// Under plan `te` such codes age. Before each replay they are those of other weights, as after an
// optimizer's step, and the forward of the first microbatch makes them anew (`weight_cache`
// device), or nobody does (python, which a capture bakes in). So whoever reads them before that, or
// at all, computes what the framework would: something else. Tested by recipe_runs_test.cpp.

#include "run/execute/loaded_step.h"

#include "core/base/index.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace capo::run {

namespace {

// Memory for codes of each group, (count, depth).
Codes memory_of(Engine& engine, Scaling scaling, const ParameterForm& form, std::int64_t count,
                std::int64_t depth) {
  const std::int64_t scales = bytes_of_scales(scaling, count, depth, block_width(scaling));
  std::byte* codes = engine.allocate(form.groups * count * depth, form.name);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): memory of codes
  return {.codes = reinterpret_cast<std::uint8_t*>(codes),
          .scales = engine.allocate(form.groups * scales, form.name)};
}

QuantizeWeights call_for(const ParameterForm& form, Scaling scaling, void* const* table,
                         const CodedWeight& memory) {
  return {.scaling = scaling,
          .type = form.type,
          .groups = form.groups,
          .in = form.columns,
          .out = form.elements / form.columns,
          .w = table,
          .along_in = memory.along_in,
          .along_out = memory.along_out};
}

// A router's product reads the weight itself, whatever the recipe.
constexpr std::array kCodedRoles{Role::Qkv, Role::Projection, Role::First, Role::Second};

// Calls visit(parameter) for the weights of a layer that have codes of their own.
template <typename Visit>
void for_each_coded(const LoadedStep& loaded, const StepLayer& layer, Visit visit) {
  for (const Role role : kCodedRoles) {
    const std::uint32_t parameter = layer.parameter[as_index(role)];
    if (parameter == kNoParameter) continue;
    if (loaded.coded[parameter].along_in.codes != nullptr) visit(parameter);
  }
}

// Each is 0.5 times its scale, which no weight is that was drawn.
constexpr std::uint8_t kAged = 0x30;

}  // namespace

void make_codes_anew(const LoadedStep& loaded, const StepLayer& layer, const Sink& launch) {
  for_each_coded(loaded, layer, [&](std::uint32_t parameter) {
    launch(call_for(loaded.layers.parameters()[parameter], *layer.shape.scaling,
                    loaded.parameters[parameter].table, loaded.coded[parameter]));
  });
}

bool age_codes(const LoadedStep& loaded) {
  bool any = false;
  for (const StepLayer& layer : loaded.layers.all()) {
    if (!layer.codes_age) continue;
    for_each_coded(loaded, layer, [&](std::uint32_t parameter) {
      const ParameterForm& form = loaded.layers.parameters()[parameter];
      const CodedWeight& coded = loaded.coded[parameter];
      for (std::uint8_t* codes : {coded.along_in.codes, coded.along_out.codes}) {
        loaded.engine.launch(
            0, Fill{.bytes = form.groups * form.elements, .value = kAged, .to = codes});
      }
      any = true;
    });
  }
  return any;
}

void renew_codes(const LoadedStep& loaded) {
  bool any = false;
  for (const StepLayer& layer : loaded.layers.all()) {
    if (!layer.codes_age) continue;
    make_codes_anew(loaded, layer, [&](const Call& call) { loaded.engine.launch(0, call); });
    any = true;
  }
  if (any) loaded.engine.synchronise();
}

std::vector<CodedWeight> coded_weights(Engine& engine, const StepLayers& layers,
                                       const std::vector<GroupedTensor>& parameters) {
  std::vector<CodedWeight> coded(parameters.size());
  for (std::uint32_t p = 0; p < parameters.size(); ++p) {
    const ParameterForm& form = layers.parameters()[p];
    const StepLayer& layer = layers.layer_of(p);
    const std::optional<Scaling> scaling = layer.shape.scaling;
    if (!scaling || layer.quantizes_each_time ||
        std::find(kCodedRoles.begin(), kCodedRoles.end(), form.role) == kCodedRoles.end())
      continue;
    const std::int64_t in = form.columns;
    const std::int64_t out = form.elements / form.columns;
    const CodedWeight memory{.along_in = memory_of(engine, *scaling, form, out, in),
                             .along_out = memory_of(engine, *scaling, form, in, out)};
    if (engine.error()) return coded;
    coded[p] = memory;
    engine.launch(0, call_for(form, *scaling, parameters[p].table, memory));
  }
  return coded;
}

}  // namespace capo::run
