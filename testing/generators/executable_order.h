// Tells which action may run next in a step that several ranks work on together. Generators draw
// executable orders with it, and shrinking keeps orders executable.
//
//   rank 0: F1.0 F1.1 ...         F1.1 of rank 1 may run when F1.1 of rank 0 has
//   rank 1: F1.0 ...
//
// A forward needs the forward of the stage before, a backward its own forward and the backward of
// the stage behind, a weight gradient its backward; where chunks are not wired, stages ask nothing
// of each other. Everything else may always run. Tested by executable_order_test.cpp.

#pragma once

#include "core/graph/stage_map.h"
#include "core/order/schedule.h"

#include <cstddef>
#include <set>
#include <tuple>

namespace capo::testing {

class Progress {
 public:
  /// Looks at chunks and stages only, not at the orders.
  explicit Progress(const Schedule& schedule) : map_(schedule) {}

  [[nodiscard]] bool may_run(std::size_t rank, const Action& action) const;
  void run(std::size_t rank, const Action& action);

 private:
  enum class Made { Forward, Backward, Weight };

  [[nodiscard]] bool has(Made made, std::int32_t stage, std::int32_t microbatch) const {
    return stage == kNoStage || made_.contains({made, stage, microbatch});
  }

  StageMap map_;
  std::set<std::tuple<Made, std::int32_t, std::int32_t>> made_;
};

/// Whether all ranks can run their orders together, those captured and those replayed.
[[nodiscard]] bool executable(const Schedule& schedule);

/// Puts the actions into an order that can be executed: each rank runs the first that may run.
/// Composites are dissolved unless the schedule is executable as it is.
[[nodiscard]] Schedule in_executable_order(Schedule schedule);

}  // namespace capo::testing
