// The sweep by which PyTorch puts transfers into an order, told moment by moment.
//
//   0F0 | 1F0   ->   rank 0 runs F0; it hands F0's output to rank 1; rank 1 runs F0
//
// add_transfers() keeps what it hears as steps. Whoever keeps less needs less memory: a course of
// ten million actions does without the steps of their transfers (core/plan/swept_course.h). Every
// action and both ends of every transfer come at one moment, behind all that they wait for. Tested
// by add_transfers_test.cpp.

#pragma once

#include "core/graph/stage_map.h"
#include "core/order/ids.h"
#include "core/order/schedule.h"

#include <cstdint>

namespace capo {

/// A tensor on its way from one rank to another: the send stands behind what `from` has done so
/// far, the receive behind what `to` has.
struct HandedOn {
  RankId from;
  std::uint32_t entry = 0;  ///< the place in the order of `from` of the action that made it
  RankId to;
  ChunkId reader;  ///< the chunk that reads it there
  MicrobatchId microbatch;
  bool forward = true;  ///< it is an activation, else a gradient
};

class SweepListener {
 public:
  virtual ~SweepListener() = default;
  /// The entries [first, end) of a rank run: an action, or all members of a composite.
  virtual void acts(RankId rank, std::uint32_t first, std::uint32_t end) = 0;
  virtual void hands_on(const HandedOn& tensor) = 0;
};

/// Whether every action found its place. The precondition is add_transfers()'s.
bool sweep(const Schedule& schedule, const StageMap& map, std::int32_t microbatches,
           SweepListener& listener);

}  // namespace capo
