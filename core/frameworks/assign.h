// assign() makes a plan for a step, and judge() finds its hazards.
//
//   const Course course = ...;             how the step runs
//   Plan plan = assign(table, course, PlanKind::Te, Granularity::PerAction);
//   std::vector<Hazard> hazards = judge(table, course, plan);
//
// Capture gives memory out, and replay uses it: the two courses may differ, and a plan made for the
// one may be judged by the other. It is linear in the tasks at a fixed number of ranks; bench/plan
// prints time and bytes a task. It stands above te/, since TE's plan is one of the two kinds.
// Tested by tests/core/plan/safe_plan_test.cpp and tests/core/frameworks/te/reuse_test.cpp.

#pragma once

#include "core/plan/course.h"
#include "core/plan/hazards.h"
#include "core/plan/plan.h"

#include <cstdint>
#include <vector>

namespace capo {

/// A step runs by its orders alone, or by a task graph that finishes.
struct Course {
  const StageMap* map = nullptr;
  const std::vector<std::vector<Delay>>* delay = nullptr;  ///< by rank and chunk
  std::vector<std::vector<Work>> work;                     ///< by rank, in the order of launch
  const TaskGraph* graph = nullptr;                        ///< null: every rank is one stream
  const Lowered* lowered = nullptr;                        ///< null exactly if `graph` is
};

void run_course(const BufferTable& table, const Course& course, CourseVisitor& visitor);

/// Whether TransformerEngine's plan comes with lower bounds, which it does not need itself; without
/// them they are 0. They cost a course of capo's own plan.
enum class LowerBounds : std::uint8_t { With, Without };

[[nodiscard]] Plan assign(const BufferTable& table, const Course& capture, PlanKind kind,
                          Granularity granularity = Granularity::PerAction,
                          LowerBounds bounds = LowerBounds::With);
/// The lower bound of each rank. There is one model of it: the heaviest set of buffers that are
/// alive at once in the course of capo's own plan, run here without giving any buffer an address.
[[nodiscard]] std::vector<std::int64_t> lower_bounds(const BufferTable& table,
                                                     const Course& capture);

[[nodiscard]] std::vector<Hazard> judge(const BufferTable& table, const Course& replay,
                                        const Plan& plan);

}  // namespace capo
