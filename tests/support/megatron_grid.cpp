#include "tests/support/megatron_grid.h"

#include "core/base/index.h"
#include "core/frameworks/megatron/orders.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

namespace capo::testing_support {

std::vector<GridStep> megatron_grid() {
  std::vector<GridStep> all;
  for (std::int64_t pipeline = 2; pipeline <= 8; ++pipeline) {
    for (std::int64_t stages = 1; stages <= 4; ++stages) {
      const auto chunks = as_index(stages);
      std::vector<std::vector<std::int64_t>> shapes;
      for (std::int64_t each = 1; each <= 4; ++each) shapes.emplace_back(chunks, each);
      const std::vector<std::int64_t> uneven{1, 3, 2, 4};
      const std::vector<std::int64_t> falling{4, 2, 3, 1};
      if (stages > 1) {
        shapes.emplace_back(uneven.begin(), uneven.begin() + stages);
        shapes.emplace_back(falling.begin(), falling.begin() + stages);
      }
      for (const std::int64_t times : {1, 2, 8}) {
        for (const auto& layers : shapes) {
          for (const MegatronCalls calls : {MegatronCalls::Batch, MegatronCalls::Overlap}) {
            all.push_back({pipeline, stages, times * pipeline, layers, calls});
          }
        }
      }
    }
  }
  return all;
}

std::string name_of(const GridStep& step) {
  return fmt::format("pp {} vp {} m {} layers {} {}", step.pipeline, step.virtual_stages,
                     step.microbatches, fmt::join(step.layers, ","), capo::name_of(step.calls));
}

Input input_of(const GridStep& step) {
  const megatron::Request request{
      .configuration = {.pipeline = step.pipeline,
                        .virtual_stages = step.virtual_stages > 1
                                              ? std::optional(step.virtual_stages)
                                              : std::nullopt,
                        .microbatches = step.microbatches,
                        .ep_overlap = true},
      .layers_per_chunk = step.layers,
      .weight_gradients = megatron::WeightGradients::Delayed};
  Input input{.form = Form::OrderFile,
              .schedule = megatron::schedule_of(megatron::orders_of(request).value())};
  input.schedule.p2p = step.calls;
  return input;
}

CheckOptions grid_options() {
  CheckOptions options;
  options.plan.kind = PlanKind::Te;
  options.modules.list = {{.name = "grouped-mlp", .kind = ModuleKind::GroupedMlp}};
  options.modules.layers = {{{0}}};
  return options;
}

}  // namespace capo::testing_support
