// lower_megatron() puts Megatron-LM's point-to-point calls around the computations of each rank.
//
//   overlap, rank 1 of 2:  recv-F | F, send-F recv-F | B, send-B recv-B | ...
//
// Megatron does not read its transfers off an order: it works out at iteration k what the neighbour
// sends for iteration k+1, and on the first rank (forward) and the last (backward) what the far
// end, PP-1 iterations behind, has just made. This file makes the same decisions from the sequences
// of forwards and backwards that a rank's order holds, in the three ways that Megatron can call:
//
//   batch    after each step one fused group [send prev, receive prev, send next, receive next],
//            waited for at once
//   overlap  single operations; in the steady state the receive for the next step is posted behind
//            this step's send, and waited for by its reader
//   flush    overlap in warm-up and cool-down as well: there the receive is posted before the
//            computation, except on the rank that leads
//
// It reports as a fault with its place what it cannot do: an order that Megatron's loop would not
// produce, a computation whose input nobody asked for, a wait without a receive. Whether the
// transfers fit together across ranks is not decided here but by the task graph.
//
// Not modelled: variable sequence lengths (a shape exchange before each call), device
// synchronisation, more than one model (encoder and decoder). It is read in schedules.py and
// p2p_communication.py of the commit in version.h. Tested by calls_test.cpp.

#pragma once

#include "core/graph/lowered.h"
#include "core/model/environment.h"

#include <cstdint>
#include <vector>

namespace capo {

struct RoutingFault {
  enum class Kind : std::uint8_t {
    Form,       ///< it is not warm-up forwards, then pairs, then the remaining backwards
    NoInput,    ///< a computation reads data for which no receive was posted
    NoReceive,  ///< Megatron asserts that a receive is outstanding, and none is
    NoOverlap,  ///< the loop without model chunks waits for each call
    OwnForward  ///< a backward runs beside the forward that it needs
  };

  Kind kind = Kind::Form;
  std::int32_t rank = 0;
  std::uint32_t entry =
      kNoEntry;  ///< its place in the rank's order; kNoEntry: the order ends early

  friend bool operator==(const RoutingFault&, const RoutingFault&) = default;
};

struct MegatronLowering {
  Lowered lowered;
  std::vector<RoutingFault> faults;  ///< at most one a rank, since the rank stops there
};

/// The stages go around in a loop, with as many chunks on every rank.
[[nodiscard]] MegatronLowering lower_megatron(const Schedule& schedule, MegatronCalls calls,
                                              bool ep_overlap);

}  // namespace capo
