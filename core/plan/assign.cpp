#include <capo/core/plan/assign.h>

#include <capo/core/plan/safe_plan.h>
#include <capo/core/plan/te_plan.h>

namespace capo {

void run_course(const BufferTable& table, const Course& course, CourseVisitor& visitor) {
  if (course.graph == nullptr) {
    run_orders(table, *course.map, course.work, visitor);
  } else {
    run_graph(table, *course.map, *course.graph, *course.lowered, *course.delay, visitor);
  }
}

Plan assign(const BufferTable& table, const Course& capture, PlanKind kind,
            Granularity granularity) {
  Plan plan{.kind = kind,
            .granularity = granularity,
            .address = std::vector<std::int64_t>(table.size(), kNowhere),
            .ranks = {}};
  std::vector<std::int64_t> nowhere(kind == PlanKind::Te ? table.size() : 0, kNowhere);
  SafePlanner safe(table, *capture.map, kind == PlanKind::Te ? nowhere : plan.address);
  run_course(table, capture, safe);
  if (kind == PlanKind::Safe) safe.place_all();
  plan.ranks = safe.memory();
  for (std::size_t r = 0; r < table.ranks(); ++r) {
    const auto rank = static_cast<std::int32_t>(r);
    RankMemory& memory = plan.ranks[r];
    if (kind == PlanKind::Te) {
      const std::int64_t bound = memory.lower_bound;
      memory = plan_as_te(table, rank, capture.work[r], plan.address);
      memory.lower_bound = bound;
    }
    for (const LayerFacts& facts : table.facts_of(rank)) memory.weights += facts.weight_bytes;
  }
  return plan;
}

std::vector<Hazard> judge(const BufferTable& table, const Course& replay, const Plan& plan) {
  HazardFinder finder(table, plan);
  run_course(table, replay, finder);
  return std::move(finder.hazards);
}

}  // namespace capo
