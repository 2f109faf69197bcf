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

#include <cstdint>
#include <optional>
#include <vector>

namespace capo {

/// Plans the memory of one rank, and hears of no other. What it notes of each buffer it numbers
/// among those of the rank, so that planning one rank at a time takes the memory of one.
class SafePlanner final : public CourseVisitor {
 public:
  /// Both outlive the planner.
  SafePlanner(const BufferTable& table, const StageMap& map, std::int32_t rank);

  void work(std::int32_t rank, const Work& work, BufferId fed_by, const Clock& clock) override;
  void sent(const Sending& sending, const Clock& clock) override;
  void receiving(const Receiving& receiving, const Clock& clock) override;

  /// Gives every buffer of the rank its address once the rank's course is over, and lets go what
  /// it noted. memory() has the pool from then on, and its lower bound and transfers before.
  void lay_out(std::vector<std::int64_t>& address);

  [[nodiscard]] RankMemory memory() const;

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
  static constexpr std::uint32_t kNoBlock = 0xffffffff;

  void settle(Lane& lane, const Clock& clock);
  void take(Lane& lane, BufferId buffer, std::int64_t bytes, std::uint8_t uses);
  void give_up(const Work& work, BufferId buffer, Point now, bool apart);
  void lay_out_lane(Lane& lane, Region region, std::vector<std::int64_t>& address);
  void drop(Lane& lane, BufferId buffer);
  [[nodiscard]] bool feeds_another(const Work& work, std::int32_t layer) const;
  [[nodiscard]] std::uint32_t& block_of(BufferId buffer) { return block_[buffer - first_]; }
  [[nodiscard]] std::uint8_t& uses_left(BufferId buffer) { return uses_left_[buffer - first_]; }

  const BufferTable& table_;
  const StageMap& map_;
  std::int32_t rank_;
  BufferId first_;                       // of the rank's graphs
  std::vector<std::uint32_t> block_;     // of its lane, by buffer; kNoBlock: it has none
  std::vector<std::uint8_t> uses_left_;  // by buffer
  Lane main_;
  Lane apart_;                      // scratch of weight gradients on their own stream
  std::vector<BufferId> spare_;     // earlier layers of the work at hand no longer need them
  std::vector<BufferId> read_;      // by the layer at hand
  BufferId handed_on_ = kNoBuffer;  // the grad input that leaves the rank while others are made
  std::optional<std::uint32_t> main_stream_;
  RankMemory memory_;
  TransferPlanner transfers_;
};

}  // namespace capo
