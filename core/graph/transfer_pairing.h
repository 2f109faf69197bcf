// The two ends of each message of a task graph.
//
// Pairing is NCCL's: messages carry no tag, so on one communicator the k-th send from rank a to
// rank b meets the k-th receive at b from a, whatever the two were meant for. Transfers that have
// no partner by name are left out of the pairing, since they are faults of their own and would
// shift everything behind them. Tested by build_test.cpp.

#pragma once

#include "core/graph/edge_list.h"
#include "core/graph/lowered.h"
#include "core/graph/stage_map.h"
#include "core/graph/task_graph.h"
#include "core/graph/task_lookup.h"
#include "core/graph/transfer_fault.h"
#include "core/model/environment.h"

#include <cstdint>
#include <vector>

namespace capo {

/// The message that a transfer carries: what the stage on the receiving side reads.
struct Message {
  bool forward = true;
  std::int32_t reader = kNoStage;  ///< the stage
  std::int32_t microbatch = kNoMicrobatch;

  friend bool operator==(const Message&, const Message&) = default;
};
[[nodiscard]] Message message_of(const Task& transfer);

/// Before the graph gets its edges. A receive without a partner never ends, and a send ends without
/// one only where sends are buffered; buffered ones do not wait for theirs.
void pair_transfers(const Lowered& lowered, const StageMap& map, const TaskLookup& lookup,
                    const Environment& environment, TaskGraph& graph, EdgeList& edges,
                    std::vector<TransferFault>& faults);

}  // namespace capo
