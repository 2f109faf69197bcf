// In capo's own plan two buffers share memory only if every use of the one is over before any use
// of the other begins, whatever the streams do.
//
// The course gives the moments: at a buffer's first write, all memory is free whose last use is
// over for certain; layout.h then finds the offsets. No two of the buffers that are alive at such a
// moment could share, so the heaviest of these sets is the least that any plan can do with; a test
// holds this plan within 5 % of it on all shipped schedules. hazards.h finds no hazard in this
// plan, on any schedule that the tests make. TE's plan is core/frameworks/te/reuse.h. Tested by
// safe_plan_test.cpp.

#pragma once

#include "core/plan/course.h"
#include "core/plan/layout.h"
#include "core/plan/pending_uses.h"
#include "core/plan/plan.h"
#include "core/plan/transfer_buffers.h"

#include <optional>
#include <vector>

namespace capo {

/// Events of one rank concern no other, so that several threads may tell it of several
/// ranks.
class SafePlanner final : public CourseVisitor {
 public:
  /// Fills `address` of all buffers. All outlive the planner.
  SafePlanner(const BufferTable& table, const StageMap& map, std::vector<std::int64_t>& address);

  void work(std::int32_t rank, const Work& work, BufferId fed_by, const Clock& clock) override;
  void sent(const Sending& sending, const Clock& clock) override;
  void receiving(const Receiving& receiving, const Clock& clock) override;

  /// Gives every buffer of a rank its address once that rank's course is over.
  /// memory().lower_bound is known without.
  void lay_out(std::int32_t rank);

  [[nodiscard]] const std::vector<RankMemory>& memory() const { return memory_; }

 private:
  // Memory that one stream gives out, which it takes back when a use is over for that stream.
  struct Lane {
    PendingUses<BufferId> uses;  // other streams cannot know yet that these are over
    std::vector<Block> blocks;
    std::vector<BufferId> owners;  // one for each time that a block was given out
    std::uint32_t moment = 0;
    std::int64_t alive = 0;
    std::int64_t most = 0;  // bytes that were alive at once
  };
  struct Rank {
    Lane main;
    Lane apart;                      // scratch of weight gradients on their own stream
    std::vector<BufferId> spare;     // earlier layers of the work at hand no longer need them
    std::vector<BufferId> read;      // by the layer at hand
    BufferId handed_on = kNoBuffer;  // the grad input that leaves the rank while others are made
    std::optional<std::uint32_t> main_stream;
  };

  void settle(Lane& lane, const Clock& clock);
  void take(Rank& rank, Lane& lane, BufferId buffer, std::int64_t bytes, std::uint8_t uses);
  void give_up(Rank& rank, const Work& work, BufferId buffer, Point now, bool apart);
  void lay_out_lane(Lane& lane, Region region);
  void drop(Lane& lane, BufferId buffer);
  [[nodiscard]] bool feeds_another(std::int32_t rank, const Work& work, std::int32_t layer) const;

  const BufferTable& table_;
  const StageMap& map_;
  std::vector<std::int64_t>& address_;   // blocks of the lane, until lay_out() makes addresses
  std::vector<std::uint8_t> uses_left_;  // by buffer
  std::vector<Rank> ranks_;
  std::vector<RankMemory> memory_;
  TransferPlanner transfers_;
};

}  // namespace capo
