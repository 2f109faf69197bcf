// The mean of replays of one program. A device at its limit of power has a clock that falls and
// rises within a second, so that one replay is up to a fifth longer than the next; what a step
// takes in a training run is the mean over such swings. Tested by replay_mean_test.cpp.

#pragma once

#include "run/execute/stepper.h"

#include <cstddef>
#include <vector>

namespace capo::run {

/// Times of a replay in microseconds; the first task began and the last one ended so long after its
/// beginning.
struct ReplayTimes {
  double replay = 0;
  double begin = 0;
  double end = 0;
  double busy = 0;
  double launch = 0;
  Beginning beginning;
  std::vector<Measured> timeline;
};

class ReplayMean {
 public:
  /// All have the same ops in their timelines.
  void add(const ReplayTimes& times);

  /// Asked only after something was added; the doubt is the largest.
  [[nodiscard]] ReplayTimes mean() const;

 private:
  ReplayTimes sum_;   ///< its beginning is the first
  double later_ = 0;  ///< nanoseconds that the others began after it, added up
  std::size_t count_ = 0;
};

}  // namespace capo::run
