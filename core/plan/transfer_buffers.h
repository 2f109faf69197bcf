// Receives are posted into slots, which are free again when what was received has been read; sends
// hold what they send until they are over.
//
//   rank 1: recv-F1.0 F1.0 recv-F1.1 F1.1      one slot, if the second receive waits for F1.0
//   rank 1: recv-F1.0 recv-F1.1 F1.0 F1.1      two slots
//
// A receive may write from its start on, whatever the streams do, so a slot is taken again only if
// its reader is over for certain before the receive begins. One stream of receives so needs no
// more slots than there are tensors at once; several streams may not know of each other. A send
// holds an output or a grad input, which is memory of the pool, from the moment it is made.
// Transfers without a task graph are unknown, and there are no such buffers then. Tested by
// transfer_buffers_test.cpp.

#pragma once

#include "core/plan/pending_uses.h"
#include "core/plan/plan.h"

#include <cstdint>
#include <vector>

namespace capo {

/// Hears of a course what concerns the transfers of one rank.
class TransferPlanner {
 public:
  /// Both outlive the planner.
  TransferPlanner(const BufferTable& table, const StageMap& map, std::int32_t rank);

  void receiving(const Receiving& receiving, const Clock& clock);
  void work(const Work& work, const Clock& clock);
  void sent(std::int64_t bytes, const Point& received, const Clock& clock);

  /// Gives the buffers of the rank's receives their addresses.
  void fill(std::vector<std::int64_t>& address) const;
  [[nodiscard]] const TransferMemory& memory() const { return memory_; }

 private:
  struct Slot {
    std::int64_t address = 0;
    std::int64_t bytes = 0;
    Point read;  // the reader of what it held last
  };

  [[nodiscard]] std::int64_t slot_for(std::int64_t bytes, const Clock& clock);
  void made(const Work& work, const Clock& clock);

  const BufferTable& table_;
  const StageMap& map_;
  std::int32_t rank_;
  RankBuffers buffers_;
  std::vector<std::int64_t> address_;  // by buffer among those of the rank's receives
  std::vector<Slot> free_;
  PendingUses<std::int64_t> sends_;  // by their bytes
  std::size_t sending_ = 0;
  std::int64_t bytes_ = 0;  // of what is being sent
  TransferMemory memory_;
};

}  // namespace capo
