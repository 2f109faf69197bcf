#include "core/model/plan_options.h"

namespace capo {

std::string_view name_of(PlanKind kind) {
  return kind == PlanKind::Te ? "te" : "safe";
}

std::optional<PlanKind> plan_named(std::string_view word) {
  if (word == "te") return PlanKind::Te;
  if (word == "safe") return PlanKind::Safe;
  return std::nullopt;
}

}  // namespace capo
