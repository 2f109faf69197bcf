#include "core/frameworks/te/captured.h"
#include "core/profiles/consult.h"

namespace capo::te {

std::optional<PlanResult> plan_of_captured(const Input& input, const CheckOptions& options) {
  if (options.plan.kind != PlanKind::Te) return std::nullopt;
  const auto captures = captured(input);
  return captures ? check(*captures, options).plan : std::nullopt;
}

}  // namespace capo::te

namespace capo {

CheckResult check_planned(const Input& input, const CheckOptions& options) {
  CheckResult result = check(input, options);
  if (!result.plan && !result.orders_clean) result.plan = te::plan_of_captured(input, options);
  return result;
}

}  // namespace capo
