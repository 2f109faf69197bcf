// A schedule with all that a plan is made of: its buffers and the course of its step, by the task
// graph where ranks communicate or work runs beside work, else by its orders alone.

#pragma once

#include "core/frameworks/assign.h"
#include "core/rules/wiring.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace capo::testing_support {

inline std::vector<Hazard> as_vector(const HazardList& found) {
  return {found.begin(), found.end()};
}

/// As the step runs; a plan of it outlives neither.
class PlannedStep {
 public:
  explicit PlannedStep(Schedule schedule, const ModuleTable& modules = {},
                       const PlanOptions& options = {}, const Environment& environment = {},
                       std::vector<CollectiveGroup> groups = {})
      : schedule_(std::move(schedule)),
        modules_(modules),
        groups_(std::move(groups)),
        microbatches_(microbatches_of(schedule_)),
        wiring_(schedule_, environment, groups_, microbatches_, false),
        table_(schedule_, microbatches_, modules_, options) {
    for (const RankOrder& rank : schedule_.ranks) delay_.push_back(resolved_delay(rank));
    course_ = {.map = &wiring_.map(), .delay = &delay_};
    if (wiring_.transfers_matter()) {
      course_.graph = &wiring_.transfers().graph;
      course_.lowered = &wiring_.lowered();
    }
    for (std::size_t r = 0; r < schedule_.ranks.size(); ++r) {
      course_.work.push_back(work_of_rank(r));
    }
  }
  PlannedStep(const PlannedStep&) = delete;
  PlannedStep& operator=(const PlannedStep&) = delete;

  [[nodiscard]] const Schedule& schedule() const { return schedule_; }
  [[nodiscard]] const Wiring& wiring() const { return wiring_; }
  [[nodiscard]] const BufferTable& table() const { return table_; }
  [[nodiscard]] const Course& course() const { return course_; }
  [[nodiscard]] const std::vector<std::vector<Delay>>& delay() const { return delay_; }

  [[nodiscard]] Plan plan(PlanKind kind) const { return assign(table_, course_, kind); }
  [[nodiscard]] std::vector<Hazard> hazards(const Plan& plan) const {
    return as_vector(judge(table_, course_, plan));
  }
  [[nodiscard]] std::vector<Hazard> hazards(PlanKind kind) const { return hazards(plan(kind)); }

 private:
  static std::int32_t microbatches_of(const Schedule& schedule) {
    std::int32_t most = schedule.microbatches.value_or(0);
    for (const RankOrder& rank : schedule.ranks) {
      for (const Entry& entry : rank.order) most = std::max(most, entry.microbatch + 1);
    }
    return most;
  }

  [[nodiscard]] std::vector<Work> work_of_rank(std::size_t rank) const {
    if (course_.lowered == nullptr) return work_of(schedule_.ranks[rank].order, delay_[rank]);
    std::vector<Work> work;
    for (const Step& step : course_.lowered->ranks[rank]) {
      if (is_work(step)) work.push_back(work_of(step, delay_[rank]));
    }
    return work;
  }

  Schedule schedule_;
  ModuleTable modules_;
  std::vector<CollectiveGroup> groups_;
  std::int32_t microbatches_;
  Wiring wiring_;
  BufferTable table_;
  std::vector<std::vector<Delay>> delay_;
  Course course_;
};

/// One module for every layer.
inline ModuleTable all_of(Module module) {
  return {.list = {std::move(module)}, .layers = {{{0}}}};
}

/// With all sizes declared, in units that are easy to add up.
inline Module sized_module() {
  return {.name = "m", .bytes = {.input = 8, .output = 8, .activations = 34, .operands = 12}};
}

}  // namespace capo::testing_support
