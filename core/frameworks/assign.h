// assign() makes a plan for a step, and judge() finds its hazards.
//
//   const Course course = ...;             how the step runs
//   Plan plan = assign(table, course, PlanKind::Te, Granularity::PerAction);
//   HazardList hazards = judge(table, course, plan);
//
// Capture gives memory out, and replay uses it: the two courses may differ, and a plan made for the
// one may be judged by the other. It is linear in the tasks at a fixed number of ranks; bench/plan
// prints time and bytes a task. It stands above te/ and megatron/, whose plans are two of the
// kinds. Tested by tests/core/plan/safe_plan_test.cpp and those of both folders: reuse_test.cpp,
// local_graphs_test.cpp.

#pragma once

#include "core/plan/course.h"
#include "core/plan/hazards.h"
#include "core/plan/plan.h"
#include "core/plan/swept_course.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace capo {

/// A step runs by its orders alone, by a task graph that finishes, or by a sweep that adds its
/// transfers.
struct Course {
  const StageMap* map = nullptr;
  const std::vector<std::vector<Delay>>* delay = nullptr;  ///< by rank and chunk
  /// Each rank's is in the order of launch; a sweep makes it when somebody asks for it.
  std::vector<std::vector<Work>> work;
  const TaskGraph* graph = nullptr;          ///< null: every rank is one stream, unless it is swept
  const Lowered* lowered = nullptr;          ///< null exactly if `graph` is
  std::shared_ptr<const SweptCourse> swept;  ///< null if there is a graph
};

/// The work of one rank of a course, which outlives it.
class RankWork {
 public:
  RankWork(const Course& course, RankId rank)
      : made_(course.swept ? course.swept->work_of(rank) : std::vector<Work>()),
        all_(course.swept ? std::span<const Work>(made_) : course.work[rank.index()]) {}
  RankWork(const RankWork&) = delete;
  RankWork& operator=(const RankWork&) = delete;

  [[nodiscard]] std::span<const Work> all() const { return all_; }

 private:
  std::vector<Work> made_;
  std::span<const Work> all_;
};

void run_course(const BufferTable& table, const Course& course, CourseVisitor& visitor);

/// Whether a framework's plan comes with lower bounds and the buffers of transfers, which it
/// does not need itself; without them they are 0. They cost a course of capo's own plan.
enum class LowerBounds : std::uint8_t { With, Without };

/// Megatron copies some tensors out of its graphs, and these get memory while the step is replayed:
/// by `replay`, or, if that is null, as captured.
[[nodiscard]] Plan assign(const BufferTable& table, const Course& capture, PlanKind kind,
                          Granularity granularity = Granularity::PerAction,
                          LowerBounds bounds = LowerBounds::With, const Course* replay = nullptr);
/// Adds to each rank's memory what is true of it under every plan: the lower bound, and the buffers
/// of its transfers. There is one model of them: the course of capo's own plan, run here without
/// giving any buffer an address.
void add_under_every_plan(const BufferTable& table, const Course& capture,
                          std::vector<RankMemory>& memory);

/// They stand in the order in which the course meets them; a sweep meets them rank by rank.
[[nodiscard]] HazardList judge(const BufferTable& table, const Course& replay, const Plan& plan);

}  // namespace capo
