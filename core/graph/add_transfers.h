// Adds transfers to an order that does not write them, as PyTorch does.
//
//   0F0 | 1F0   ->   0F0 0SEND_F0 | 1RECV_F0 1F0
//
// An action that produces something for another rank is followed by its send, and the receive joins
// the other rank's list at the same moment; so one global order of all transfers exists, and the
// result finishes under every communicator layout. PyTorch sweeps over the ranks in ascending
// order, one action a rank and sweep; which receive stands where follows from that, and the lists
// here are the same. A rank that waits is not swept but woken: one heap operation an action instead
// of one look an action and sweep.
//
// If no rank can move, the schedule has a cycle. The steps that did come out are kept, and the
// rules about dependencies find the cycle. Tested by add_transfers_test.cpp against PyTorch's own
// lists.

#pragma once

#include "core/graph/lowered.h"
#include "core/graph/stage_map.h"

namespace capo {

struct WithTransfers {
  Lowered lowered;
  bool complete = false;  ///< every action found its place
};

/// Precondition: every entry names a chunk and, if its kind has one, a microbatch below
/// `microbatches`.
[[nodiscard]] WithTransfers add_transfers(const Schedule& schedule, const StageMap& map,
                                          std::int32_t microbatches);

}  // namespace capo
