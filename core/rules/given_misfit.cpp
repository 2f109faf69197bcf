#include "core/rules/given_plan.h"

#include "core/rules/check.h"
#include "core/rules/context.h"

#include <vector>

namespace capo {

std::optional<Refusal> misfit_of_given_plan(const Context& context) {
  const CheckOptions& options = context.options();
  const Schedule& schedule = context.schedule();
  if (BufferTable::count(schedule, context.microbatches(), options.modules) >
          options.plan.max_buffers ||
      !orders_are_clean(context)) {
    return std::nullopt;
  }
  const BufferTable table(schedule, context.microbatches(), options.modules, options.plan);
  if (table.beyond_addresses()) return std::nullopt;
  std::vector<std::vector<Work>> work;
  for (const RankOrder& rank : schedule.ranks)
    work.push_back(work_of(rank.order, resolved_delay(rank)));
  const auto plan = plan_of(*options.given, table, StageMap(schedule), work);
  if (plan) return std::nullopt;
  return plan.error();
}

}  // namespace capo
