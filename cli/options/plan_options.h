// The flags that declare a plan and what its graphs are made of: shorthands for members of
// model.json, which `check` and `minimise` read.
//
//   --plan te --modules linear,grouped-mlp --budget 80GiB
//
// Tested by plan_flags_test.cpp.

#pragma once

#include "cli/options/environment_options.h"
#include "core/model/model.h"
#include "core/model/plan_options.h"
#include "core/order/schedule.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace CLI {
class App;
}

namespace capo::cli {

struct PlanFlags {
  std::optional<PlanKind> kind;
  std::optional<Aliases> aliases;
  std::vector<ModuleKind> modules;  ///< one of all chunks, or of each; empty: not given
  std::optional<std::int64_t> budget;
  std::vector<std::int32_t> model_chunks;  ///< empty: not given
  std::uint64_t max_buffers = PlanOptions::kDefaultMaxBuffers;
  std::uint64_t max_unasked_buffers = PlanOptions::kDefaultMaxUnaskedBuffers;

  void add_to(CLI::App& app);

  /// Throws CLI::ValidationError where a flag contradicts what the model file states, or has no use
  /// beside the rest.
  void merge_into(Model& declared) const;

  /// The flag, or --model, that speaks of more or fewer chunks than a rank of the input has. A rank
  /// without chunks fits everything.
  [[nodiscard]] std::optional<Misfit> misfit(const Schedule& schedule, const Model& declared) const;
};

}  // namespace capo::cli
