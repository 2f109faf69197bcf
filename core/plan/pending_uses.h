// Uses of memory that are under way until a clock says that they are over.
//
//   add(output of F1, at stream 0 position 3, received at stream 7 position 2)
//   settle(clock)   ->   the output, as soon as the clock is behind either point
//
// Uses that share both streams end in their order, so that only the first of each is looked at.
// Tested by safe_plan_test.cpp and transfer_buffers_test.cpp.

#pragma once

#include "core/plan/course.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace capo {

/// `Held` says what is in use.
template <typename Held>
class PendingUses {
 public:
  /// It is over when either point is; for work both are one.
  void add(Held held, Point point, Point received) {
    queue_of({point.stream, received.stream})
        .uses.push_back({.point = point, .received = received, .held = held});
  }
  /// Calls over(held) for each use that is over by now, and forgets it.
  template <typename Over>
  void settle(const Clock& clock, Over over) {
    for (Queue& queue : queues_) {
      for (; queue.over < queue.uses.size(); ++queue.over) {
        const Use& first = queue.uses[queue.over];
        if (!clock.after(first.point) && !clock.after(first.received)) break;
        over(first.held);
      }
      queue.forget();
    }
  }

 private:
  struct Use {
    Point point;
    Point received;
    Held held;
  };
  using Streams = std::pair<std::uint32_t, std::uint32_t>;

  // Those that are over stay until they are the larger half.
  struct Queue {
    Streams streams;
    std::vector<Use> uses;
    std::size_t over = 0;

    void forget() {
      if (over * 2 <= uses.size()) return;
      uses.erase(uses.begin(), uses.begin() + static_cast<std::ptrdiff_t>(over));
      over = 0;
    }
  };

  Queue& queue_of(Streams streams) {
    auto found = std::lower_bound(
        queues_.begin(), queues_.end(), streams,
        [](const Queue& queue, const Streams& than) { return queue.streams < than; });
    if (found == queues_.end() || found->streams != streams)
      found = queues_.insert(found, Queue{.streams = streams, .uses = {}});
    return *found;
  }

  std::vector<Queue> queues_;  // sorted; a rank has few
};

}  // namespace capo
