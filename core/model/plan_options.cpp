#include "core/model/plan_options.h"

#include <array>
#include <cstddef>

namespace capo {

std::string_view name_of(PlanKind kind) {
  constexpr std::array<std::string_view, 3> kNames{"te", "safe", "given"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::optional<PlanKind> plan_named(std::string_view word) {
  if (word == "te") return PlanKind::Te;
  if (word == "safe") return PlanKind::Safe;
  return std::nullopt;
}

}  // namespace capo
