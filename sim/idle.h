// Where the time of each rank goes: computing, waiting for another computation, or waiting for
// bytes.
//
//   rank 1   |--warm-up--|F1.0|  |F1.1|...|B1.1|-drain-|
//
// A rank is idle between its computations, before the first (warm-up) and after the last (drain).
// Each idle interval has a cause: what the next computation waited for last, followed back over
// everything that is communication to the computation that set it off. From the end of that one on
// the rank waits for bytes alone; that part of the interval is exposed communication. Where several
// things were equally late, the one with the lowest vertex is named.
//
// Computations that overlap, on a stream of weight gradients, count once. Tested by idle_test.cpp.

#pragma once

#include "sim/durations.h"
#include "sim/timeline.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace capo {

struct Idle {
  enum class Cause : std::uint8_t {
    WarmUp,  ///< nothing ran yet
    Wait,    ///< between two computations
    Drain,   ///< nothing runs any more
  };

  Cause cause = Cause::Wait;
  double begin = 0;
  double end = 0;
  double exposed = 0;          ///< of it: communication that nothing hides
  TaskId next = kNoTask;       ///< what runs then; none in the drain
  TaskId waits_for = kNoTask;  ///< the computation that set off what was waited for; if any
};

/// "warm-up", "wait", "drain".
[[nodiscard]] std::string_view name_of(Idle::Cause cause);

struct RankTimes {
  double busy = 0;     ///< computing
  double bubble = 0;   ///< not computing, from 0 to the makespan
  double exposed = 0;  ///< of the bubble
  double first = 0;    ///< beginning of the first computation
  double last = 0;     ///< end of the last
  std::vector<Idle> idle;
};

/// By rank. A rank without a computation is idle throughout.
[[nodiscard]] std::vector<RankTimes> rank_times(const Subject& subject, const Timeline& timeline);

/// The longest of the ranks' times from first to last computation: the papers' cost of a step.
[[nodiscard]] double span_of(const std::vector<RankTimes>& ranks);

/// What the makespan consists of: from a task that begins at 0 to one that ends last, each waiting
/// for the one before. Tasks of one vertex count once, by the first.
[[nodiscard]] std::vector<TaskId> critical_path(const Subject& subject, const Timeline& timeline);

}  // namespace capo
