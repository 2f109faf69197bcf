// assign: a plan for a step. judge: what is wrong with one.
//
//   const Course course = ...;             how the step runs
//   Plan plan = assign(table, course, PlanKind::Te, Granularity::PerAction);
//   std::vector<Hazard> hazards = judge(table, course, plan);
//
// Capture gives memory out, replay uses it: the two courses may differ, and a plan made for the one
// may be judged by the other. Linear in the tasks at a fixed number of ranks; bench/plan prints
// time and bytes a task.

#pragma once

#include "core/plan/course.h"
#include "core/plan/hazards.h"
#include "core/plan/plan.h"

#include <cstdint>
#include <vector>

namespace capo {

/// How a step runs: by its orders alone, or by a task graph that finishes.
struct Course {
  const StageMap* map = nullptr;
  const std::vector<std::vector<Delay>>* delay = nullptr;  ///< of every rank's chunks
  std::vector<std::vector<Work>> work;                     ///< by rank, in the order of launch
  const TaskGraph* graph = nullptr;                        ///< null: every rank is one stream
  const Lowered* lowered = nullptr;                        ///< of the graph
};

void run_course(const BufferTable& table, const Course& course, CourseVisitor& visitor);

/// Whether lower bounds are worked out with TransformerEngine's plan, which needs none; they cost
/// as much as capo's own. Without: they are 0.
enum class LowerBounds : std::uint8_t { With, Without };

[[nodiscard]] Plan assign(const BufferTable& table, const Course& capture, PlanKind kind,
                          Granularity granularity = Granularity::PerAction,
                          LowerBounds bounds = LowerBounds::With);
/// The lower bound of each rank.
[[nodiscard]] std::vector<std::int64_t> lower_bounds(const BufferTable& table,
                                                     const Course& capture);

[[nodiscard]] std::vector<Hazard> judge(const BufferTable& table, const Course& replay,
                                        const Plan& plan);

}  // namespace capo
