#include "core/model/plan_options.h"

#include <array>
#include <cstddef>

namespace capo {

std::string_view name_of(PlanKind kind) {
  constexpr std::array<std::string_view, 4> kNames{"te", "safe", "given", "mcore-local"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::optional<PlanKind> plan_named(std::string_view word) {
  if (word == "te") return PlanKind::Te;
  if (word == "safe") return PlanKind::Safe;
  if (word == "mcore-local") return PlanKind::McoreLocal;
  return std::nullopt;
}

}  // namespace capo
