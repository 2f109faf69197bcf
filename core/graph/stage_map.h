// The map between stages and the chunks that hold them.
//
// Stages are numbered over all ranks; a rank numbers its chunks. Rules, lowering and the task graph
// go from one to the other all the time, so both directions are tables. Tested by
// stage_map_test.cpp.

#pragma once

#include "core/order/ids.h"
#include "core/order/schedule.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace capo {

constexpr StageId kNoStage = -1;

class StageMap {
 public:
  using Place = HeldChunk;

  /// Under Topology::Independent every chunk of every rank is a stage of its own, wired to none.
  explicit StageMap(const Schedule& schedule);

  [[nodiscard]] bool wired() const { return wired_; }
  [[nodiscard]] std::int32_t stages() const { return static_cast<std::int32_t>(homes_.size()); }
  [[nodiscard]] const Place& home(StageId stage) const { return homes_[stage.index()]; }
  [[nodiscard]] StageId stage_of(RankId rank, ChunkId chunk) const {
    return stages_[rank.index()][chunk.index()];
  }
  /// The stage whose output `stage` reads, or its gradient's; kNoStage at either end.
  [[nodiscard]] StageId before(StageId stage) const {
    return wired_ && stage > 0 && !begins_pipeline(stage) ? StageId(stage - 1) : kNoStage;
  }
  [[nodiscard]] StageId after(StageId stage) const {
    const bool last = stage + 1 == stages() || begins_pipeline(stage + 1);
    return wired_ && !last ? StageId(stage + 1) : kNoStage;
  }
  /// The stage that holds the other end of a transfer of `stage`, or whose output or gradient a
  /// computation of `stage` reads; kNoStage if there is none.
  [[nodiscard]] StageId neighbour(Kind kind, StageId stage) const;
  [[nodiscard]] bool same_rank(StageId a, StageId b) const { return home(a).rank == home(b).rank; }

 private:
  // No pipeline is longer than the first.
  [[nodiscard]] bool begins_pipeline(std::int32_t stage) const {
    return stage >= stages_of_first_ && stage % stages_of_first_ == 0;
  }

  bool wired_ = false;
  std::int32_t stages_of_first_;  // stages of the first pipeline; INT32_MAX: there is no other
  std::vector<Place> homes_;
  std::vector<std::vector<StageId>> stages_;
};

}  // namespace capo
