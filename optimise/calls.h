// Calls of several weight gradients, as core/order/fuse_weights.h makes them of an order.
//
//   W0 W0 W0 W0 W0, at most 3 in a call   ->   (W0 W0 W0) (W0 W0)     places 0 1 2 0 1
//
// Weight gradients of one series that stand next to each other on a rank fill one call after the
// other. Which place each has in its call follows from those before it alone. A call begins when
// its rank is free, since what its members wait for has run on that rank before, and its time is
// added up as the simulator does, so that all ends are the simulator's to the last bit. Within a
// call a task ends where the sum of those up to it is; nobody waits for that. Memory is given up by
// members one after the other, and no forward begins before all have: so peaks are those of the
// same order without calls. Tested by calls_test.cpp.

#pragma once

#include "optimise/problem.h"

#include <cstdint>
#include <vector>

namespace capo::optimise {

class Calls {
 public:
  /// The problem outlives it.
  explicit Calls(const Problem& problem);

  /// The place in its call of a task that stands behind one of the series `before`, which has the
  /// place `place`; 0 if a call begins with it, or if it is no weight gradient.
  [[nodiscard]] std::uint32_t place_behind(SeriesId before, std::uint32_t place,
                                           SeriesId series) const {
    if (series != before || half_of(series) != Half::Weight || place + 1 == most_) return 0;
    return place + 1;
  }
  /// The time of a call from its beginning to the end of the task at this place.
  [[nodiscard]] double until(SeriesId series, std::uint32_t place) const {
    return place == 0 ? problem_.series[series].takes : sums_[stage_of(series) * most_ + place];
  }
  /// The time that a task at this place adds to its call.
  [[nodiscard]] double takes(SeriesId series, std::uint32_t place) const {
    return place == 0 ? problem_.series[series].takes : problem_.series[series].further;
  }

 private:
  const Problem& problem_;
  std::uint32_t most_;
  std::vector<double> sums_;  // by stage and place; empty if each is a call of its own
};

/// The problem without calls in which each weight gradient takes its share of the best call that
/// fits the memory: n of them take no less in any calls. So orders come to no less than they do
/// there, and bounds of it are bounds.
[[nodiscard]] Problem with_least_weights(Problem problem);

}  // namespace capo::optimise
