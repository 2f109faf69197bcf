// Finds tasks by kind, stage and microbatch, such as the forward of stage 3 and microbatch 7 or the
// receive of its input, while a task graph is built. The table is dense, since every stage has
// every microbatch. Tested through build_test.cpp.

#pragma once

#include "core/base/assert.h"
#include "core/base/index.h"
#include "core/graph/task_graph.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace capo {

// A stage and microbatch have one slot for each of these.
enum class Thing : std::uint8_t { Forward, Backward, Weight, SendF, ReceiveF, SendB, ReceiveB };
constexpr std::size_t kThings = 7;
constexpr std::size_t kComputedThings = 3;

inline Thing thing_of(Kind kind) {
  CAPO_ASSERT(is_compute(kind) || is_transfer(kind), "nothing else is of one microbatch alone");
  switch (kind) {
    case Kind::Forward:
      return Thing::Forward;
    case Kind::Backward:
    case Kind::BackwardInput:
      return Thing::Backward;
    case Kind::BackwardWeight:
      return Thing::Weight;
    case Kind::SendForward:
      return Thing::SendF;
    case Kind::ReceiveForward:
      return Thing::ReceiveF;
    case Kind::SendBackward:
      return Thing::SendB;
    default:
      return Thing::ReceiveB;
  }
}

class TaskLookup {
 public:
  /// `things`: how many of a Thing's values are asked for.
  TaskLookup(std::int32_t stages, std::int32_t microbatches, std::size_t things = kThings)
      : stages_(stages),
        microbatches_(microbatches),
        things_(things),
        tasks_(as_index(stages) * as_index(microbatches) * things, kNoTask) {}

  [[nodiscard]] std::int32_t microbatches() const { return microbatches_; }
  [[nodiscard]] bool holds(StageId stage, MicrobatchId microbatch) const {
    return stage != kNoStage && microbatch >= 0 && microbatch < microbatches_;
  }
  TaskId& at(Thing thing, StageId stage, MicrobatchId microbatch) {
    return tasks_[slot(thing, stage, microbatch)];
  }
  [[nodiscard]] TaskId find(Thing thing, StageId stage, MicrobatchId microbatch) const {
    return holds(stage, microbatch) ? tasks_[slot(thing, stage, microbatch)] : kNoTask;
  }

 private:
  [[nodiscard]] std::size_t slot(Thing thing, StageId stage, MicrobatchId microbatch) const {
    CAPO_ASSERT(stage < stages_ && as_index(thing) < things_, "it is one of the schedule's");
    const auto cell = stage.index() * as_index(microbatches_) + microbatch.index();
    return cell * things_ + as_index(thing);
  }

  std::int32_t stages_;
  std::int32_t microbatches_;
  std::size_t things_;
  std::vector<TaskId> tasks_;
};

}  // namespace capo
