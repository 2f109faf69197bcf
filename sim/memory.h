// How much each rank holds over time, and when it holds most.
//
// A forward takes its memory when it begins; a backward gives up some when it ends, and the weight
// gradient the rest. Two models are published, and peaks under one say nothing about the other:
//
//   f=1,b=0,w=-1         all is held until the weight gradient (controllable memory, Qi et al.)
//
//   f=1,b=-0.5,w=-0.5    the half for inputs gives up a part (M_B and M_W; zero bubble, Qi et al.)
//
// A chunk that recomputes (Recomputed) keeps the share `keep` of what f takes; its backward, which
// runs the forward again, takes the rest when it begins. All but what is kept is then held for a
// short time:
//
//   f=1,b=0,w=-1,keep=0.1    a forward takes 0.1, its input half 0.9, its weight gradient gives up
//   1
//
// Both models count microbatches of a rank: one chunk of v holds 1/v, of two pipelines 2/v, since a
// microbatch is in one of them. A whole backward gives up both at its end. At one moment what ends
// makes room for what begins after it on the same stream. Microbatches are counted from their
// forwards on, even where nothing is kept of them. Tested by memory_test.cpp.

#pragma once

#include "core/base/result.h"
#include "sim/durations.h"
#include "sim/task_times.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo {

/// The memory that each task of a microbatch adds to its rank; the sum of the three is 0.
struct MemoryChange {
  double forward = 1;
  double backward = 0;  ///< the input-gradient half
  double weight = -1;
  double keep = 0;  ///< of chunks that recompute: the share of `forward` that a forward takes

  friend bool operator==(const MemoryChange&, const MemoryChange&) = default;
};

/// The memory that the tasks of one chunk add.
struct ChunkMemory {
  double forward = 0;
  double again = 0;     ///< when a backward begins: what it makes again
  double backward = 0;  ///< and when it ends
  double weight = 0;
};

/// Indexed by rank and chunk - 1.
using MemoryChanges = std::vector<std::vector<ChunkMemory>>;

/// A moment at which what a rank holds changes.
struct MemoryStep {
  double time = 0;
  double held = 0;                ///< from then on
  std::int32_t microbatches = 0;  ///< number of microbatches of which something is held
  TaskId task = kNoTask;
};

struct MemoryPeak {
  double held = 0;
  double time = 0;                ///< the first moment at which so much is held
  TaskId task = kNoTask;          ///< that began then
  std::int32_t microbatches = 0;  ///< the most that are held at one time; not at the same moment
};

/// The steps of one rank's memory, in the order of time.
[[nodiscard]] std::vector<MemoryStep> memory_of(const Subject& subject, const TaskTimes& times,
                                                const MemoryChanges& changes, std::int32_t rank);
/// The highest of its steps, none of which is kept.
[[nodiscard]] MemoryPeak peak_of(const Subject& subject, const TaskTimes& times,
                                 const MemoryChanges& changes, std::int32_t rank);

/// "f=1,b=-0.5,w=-0.5": all three, which add up to nothing, and `keep` or not. The error says what
/// is wrong.
[[nodiscard]] Result<MemoryChange, std::string> read_memory(std::string_view text);

/// The part of a microbatch that one of a rank's chunks holds and runs, by rank: 1/v if the
/// microbatch passes v chunks there, which are half of them if there are two pipelines.
[[nodiscard]] std::vector<double> chunk_shares(const Schedule& schedule);

/// Applies one change of a microbatch on a rank to all ranks; each of the chunks that it passes
/// there has an equal share.
[[nodiscard]] MemoryChanges same_for_all(const Schedule& schedule, const MemoryChange& change,
                                         const Recomputed& recomputed);

}  // namespace capo
