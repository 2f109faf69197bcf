// Where each stage lives, and where each thing of a stage and microbatch is looked up.
//
// Stages are numbered over all ranks; a rank numbers its chunks. Rules, lowering and the task graph
// go from one to the other all the time, so both directions are tables.

#pragma once

#include "core/order/schedule.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace capo {

constexpr std::int32_t kNoStage = -1;

class StageMap {
 public:
  struct Place {
    std::int32_t rank = -1;  ///< -1: the stage is on no rank
    std::int32_t chunk = 0;
  };

  /// Under Topology::Independent every chunk of every rank is a stage of its own, wired to none.
  explicit StageMap(const Schedule& schedule);

  [[nodiscard]] bool wired() const { return wired_; }
  [[nodiscard]] std::int32_t stages() const { return static_cast<std::int32_t>(homes_.size()); }
  [[nodiscard]] const Place& home(std::int32_t stage) const {
    return homes_[static_cast<std::size_t>(stage)];
  }
  [[nodiscard]] std::int32_t stage_of(std::int32_t rank, std::int32_t chunk) const {
    return stages_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(chunk) - 1];
  }
  /// The stage whose output `stage` reads, or its gradient's; kNoStage at either end.
  [[nodiscard]] std::int32_t before(std::int32_t stage) const {
    return wired_ && stage > 0 && stage != second_pipeline_ ? stage - 1 : kNoStage;
  }
  [[nodiscard]] std::int32_t after(std::int32_t stage) const {
    const bool last = stage + 1 == stages() || stage + 1 == second_pipeline_;
    return wired_ && !last ? stage + 1 : kNoStage;
  }
  /// The other stage that an action of `stage` has to do with: where the other end of a transfer
  /// is, or whose output or gradient a computation reads.
  [[nodiscard]] std::int32_t neighbour(Kind kind, std::int32_t stage) const;
  [[nodiscard]] bool same_rank(std::int32_t a, std::int32_t b) const {
    return home(a).rank == home(b).rank;
  }

 private:
  bool wired_ = false;
  std::int32_t second_pipeline_;  // its first stage; with one pipeline a stage that is none
  std::vector<Place> homes_;
  std::vector<std::vector<std::int32_t>> stages_;
};

}  // namespace capo
