// The zero bubble search of linear pipelines: an order of F, B and W for given times of the tasks
// and a given memory limit, found by rules of thumb rather than by proof.
//
//   3 ranks, 4 microbatches, F = B = W, limit 3 F:
//   rank 0:  F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3
//   rank 1:  F0 F1 B0 F2 B1 W0 F3 B2 W1 B3 W2 W3
//   rank 2:  F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3
//
// After the warm-up every round gives each rank one B and at most one F, and a W goes where the
// rank would wait otherwise or where memory demands one. Eight combinations of three choices are
// tried and the first of the shortest is kept; what is short is the span, the longest time between
// a rank's first start and its last end. Every decision is the one of the authors' program, down to
// the order of the additions, so that equal times decide alike; and milliseconds decide as
// microseconds do.
//
// Ranks may differ in their times; the last, with its loss, often does. The authors' program then
// sometimes runs a forward before the rank ahead has sent its input. Here no rank takes more
// forwards into its warm-up than the one ahead, so that every order can run.
//
// Nothing here proves that an order is the best: with little memory or slow transfers it is not.
// With the memory of 1F1B, a forward for each rank, it was as short as ZB-H1 wherever it was tried
// with two transfers no longer than a W and twice as many microbatches as ranks, or more.
//
// Qi et al., arXiv 2401.10241, section 3; zb.py of sail-sg/zero-bubble-pipeline-parallelism at
// 39f2c186. Tested by zero_bubble_search_test.cpp.

#pragma once

#include "core/base/result.h"
#include "schedules/orders.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace capo::published {

/// One chunk a rank, stage s on rank s; ZB-1p, ZB-1.5p and ZB-2p are the limits of 1, 1.5 and 2
/// times `ranks` forwards. Every limit that holds one microbatch is accepted.
[[nodiscard]] Result<PublishedOrders, std::string> zero_bubble_search(const Setting& setting);

/// Whether what a rank holds stays within the limit of the setting, by the number of tasks it has
/// run: counted and not summed up, so that rounding hides no limit that is reached exactly.
class MemoryLimit {
 public:
  explicit MemoryLimit(const Setting& setting);

  struct Tasks {
    std::int32_t forwards = 0;  ///< of all chunks, like the two others
    std::int32_t backwards = 0;
    std::int32_t weights = 0;
  };

  /// Whether `more` forwards can follow, and a backward after them.
  [[nodiscard]] bool fits_forwards(const Tasks& run, std::int32_t more = 1) const;
  [[nodiscard]] bool fits_backward(const Tasks& run) const;

 private:
  double forward_;
  double kept_;      ///< by a microbatch between its backward and its weight gradient
  double headroom_;  ///< of a backward that takes memory before it gives any back
  double limit_;
};

/// The same setting with times that are whole numbers, in a smaller unit, where they are decimal
/// fractions of few digits: sums of those are rounded, and equal times would not be equal.
[[nodiscard]] Setting in_whole_times(const Setting& setting);

/// What this search and the one on V placement ask of counts, times and memory: in one sentence why
/// the schedule cannot be made, or nothing.
[[nodiscard]] std::optional<std::string> refuse_search(std::string_view schedule,
                                                       const Setting& setting, std::int32_t chunks);

}  // namespace capo::published
