// The declarations that a verdict is relative to, beyond the input itself. None is guessed: a field
// that is left out is undeclared, and the report says so.

#pragma once

#include "core/diag/diagnostics.h"
#include "core/model/environment.h"
#include "core/model/model.h"
#include "core/model/plan_options.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace capo {

struct GivenPlan;

struct CheckOptions {
  std::size_t findings_per_rule = Diagnostics::kDefaultLimit;
  Environment environment;
  std::vector<CollectiveGroup> groups;
  ModuleTable modules;
  PlanOptions plan;
  std::shared_ptr<const GivenPlan> given;  ///< null unless plan.kind is PlanKind::Given
  /// Nobody looks at the plan but for what is wrong with it.
  bool findings_alone = false;
};

/// A check under all that the model declares.
[[nodiscard]] inline CheckOptions check_options_of(const Model& model) {
  return {.environment = model.environment,
          .groups = model.groups,
          .modules = model.modules,
          .plan = model.plan};
}

}  // namespace capo
