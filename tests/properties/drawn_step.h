// Steps of which plans are made, drawn: of any sound schedule, layers, modules and environment.

#pragma once

#include "testing/generators/sound_schedule.h"
#include "tests/core/plan/planned.h"

#include <fmt/format.h>
#include <rapidcheck.h>

#include <cstdint>
#include <optional>

namespace capo::testing {

inline std::int32_t below(std::int32_t count) {
  return *rc::gen::inRange<std::int32_t>(0, count);
}

inline Environment any_environment() {
  return {.communicators = static_cast<Communicators>(below(3)),
          .transfers = static_cast<TransferMode>(below(2)),
          .weight_stream = below(2) == 0};
}

inline ModuleTable any_modules(Schedule& schedule) {
  ModuleTable modules;
  for (std::int32_t i = 0; i < 3; ++i) {
    modules.list.push_back({.name = fmt::format("m{}", i),
                            .bytes = {.input = 1 + below(9),
                                      .output = 1 + below(9),
                                      .activations = below(40),
                                      .operands = below(12)}});
  }
  if (below(2) == 0) {
    Module& quantizing = modules.list.back();
    quantizing.kind = ModuleKind::Linear;
    quantizing.recipe = Recipe::Block;
    quantizing.bytes.quantized_weight = below(12);
  }
  for (RankOrder& rank : schedule.ranks) {
    rank.layers = {.form = Layers::Form::List, .values = {}};
    auto& of_rank = modules.layers.emplace_back();
    for (std::int32_t chunk = 0; chunk < rank.chunks; ++chunk) {
      rank.layers.values.push_back(below(8) == 0 ? 0 : 1 + below(2));
      auto& of_chunk = of_rank.emplace_back();
      for (std::int64_t layer = 0; layer < rank.layers.values.back(); ++layer)
        of_chunk.push_back(below(3));
      // A level with one entry would speak for all layers, one without for none.
      if (of_chunk.empty()) of_chunk.push_back(0);
    }
  }
  return modules;
}

inline std::optional<Aliases> any_aliases() {
  if (below(3) == 0) return std::nullopt;
  return Aliases{.input = below(2) == 0, .grad_output = below(2) == 0};
}

// A step of a sound schedule, of any layers and modules, in any environment.
struct Drawn {
  Schedule schedule = *sound_schedule();
  ModuleTable modules = below(3) == 0 ? ModuleTable{} : any_modules(schedule);
  PlanOptions options{.aliases = any_aliases()};
  testing_support::PlannedStep step{schedule, modules, options, any_environment()};
};

}  // namespace capo::testing
