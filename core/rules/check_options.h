// What a verdict is relative to beyond the input itself. Nothing here is guessed: what is left out
// is undeclared, and the report says so.

#pragma once

#include <capo/core/diag/diagnostics.h>
#include <capo/core/graph/environment.h>
#include <capo/core/model/model.h>
#include <capo/core/plan/plan_options.h>

#include <cstddef>
#include <vector>

namespace capo {

struct CheckOptions {
  std::size_t findings_per_rule = Diagnostics::kDefaultLimit;
  Environment environment;
  std::vector<CollectiveGroup> groups;
  ModuleTable modules;
  PlanOptions plan;
};

}  // namespace capo
