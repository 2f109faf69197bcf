// Uses of memory that are under way until a clock says that they are over.
//
//   add(output of F1, at stream 0 position 3, received at stream 7 position 2)
//   settle(clock)   ->   the output, as soon as the clock is behind either point
//
// Uses that share both streams end in their order, so that only the first of each is looked at.
// Tested by safe_plan_test.cpp and transfer_buffers_test.cpp.

#pragma once

#include "core/plan/course.h"

#include <cstdint>
#include <deque>
#include <map>
#include <utility>

namespace capo {

/// `Held` says what is in use.
template <typename Held>
class PendingUses {
 public:
  /// It is over when either point is; for work both are one.
  void add(Held held, Point point, Point received) {
    uses_[{point.stream, received.stream}].push_back(
        {.point = point, .received = received, .held = held});
  }
  /// Calls over(held) for each use that is over by now, and forgets it.
  template <typename Over>
  void settle(const Clock& clock, Over over) {
    for (auto& [streams, uses] : uses_) {
      while (!uses.empty() &&
             (clock.after(uses.front().point) || clock.after(uses.front().received))) {
        over(uses.front().held);
        uses.pop_front();
      }
    }
  }

 private:
  struct Use {
    Point point;
    Point received;
    Held held;
  };

  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<Use>> uses_;  // by both streams
};

}  // namespace capo
