// Weights of layers whose products read codes and whose module has a cache of weights, quantized
// once before a step, both ways. They belong to the run, as parameters do, and to no plan. Where a
// module has none, each forward quantizes them into a buffer of the plan (run/modules/coded.h).
// Tested by recipe_runs_test.cpp.

#include "run/execute/loaded_step.h"

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

}  // namespace

std::vector<CodedWeight> coded_weights(Engine& engine, const StepLayers& layers,
                                       const std::vector<GroupedTensor>& parameters) {
  std::vector<CodedWeight> coded(parameters.size());
  for (std::uint32_t p = 0; p < parameters.size(); ++p) {
    const ParameterForm& form = layers.parameters()[p];
    const StepLayer& layer = layers.layer_of(p);
    const std::optional<Scaling> scaling = layer.shape.scaling;
    if (!scaling || layer.quantizes_each_time ||
        (form.role != Role::First && form.role != Role::Second))
      continue;
    const std::int64_t in = form.columns;
    const std::int64_t out = form.elements / form.columns;
    const CodedWeight memory{.along_in = memory_of(engine, *scaling, form, out, in),
                             .along_out = memory_of(engine, *scaling, form, in, out)};
    if (engine.error()) return coded;
    coded[p] = memory;
    engine.launch(0, QuantizeWeights{.scaling = *scaling,
                                     .type = form.type,
                                     .groups = form.groups,
                                     .in = in,
                                     .out = out,
                                     .w = parameters[p].table,
                                     .along_in = memory.along_in,
                                     .along_out = memory.along_out});
  }
  return coded;
}

}  // namespace capo::run
