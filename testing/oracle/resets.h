// The second opinion on resets of graphs: what comes behind one that took its graphs away.
//
//   Replay(1,0) Reset(1) Replay(1,0) Reset(1)     the third is cut short, the fourth finds nothing
//
// It looks at one rank that replays all that it has captured. Every step is judged by asking all
// others. It shares no code with the product and includes only the standard library. Tested by
// tests/testing/oracle/resets_test.cpp; that the product agrees is enumerated by capo_exhaustive.

#pragma once

#include <vector>

namespace capo::oracle {

struct OfResets {
  static constexpr int kAll = -1;

  enum Kind { Replay, Backward, Reset, SendOutput, SendGradient };

  Kind kind = Replay;  ///< a backward is a replay as well
  int chunk = 1;       ///< kAll: a reset of all chunks
  int microbatch = 0;  ///< kAll: a reset of all microbatches of its chunk
};

enum class ResetFault {
  None,
  After,     ///< the first replay of a cell none of which comes before its reset
  CutShort,  ///< the first replay of a cell behind its reset, in front of which it had begun
  Again,     ///< a reset of graphs that are all reset already
  NoGraph,   ///< a reset of graphs that there are none of
  Sent,      ///< a send of what the last graph's pool held, but for the last backward's gradient
};

/// The faults are listed by step.
[[nodiscard]] std::vector<ResetFault> faults_of_resets(const std::vector<OfResets>& steps);

}  // namespace capo::oracle
