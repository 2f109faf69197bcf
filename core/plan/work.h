// A rank's graphs do pieces of work in the order in which they are launched; a plan is made for
// this sequence, and its memory is judged by it.
//
// A piece of work is a forward, backward or weight gradient of all layers of a chunk, or of one
// layer if the chunk's layers run apart. Transfers are no work; they read what work made. Tested by
// course_test.cpp.

#pragma once

#include "core/graph/lowered.h"
#include "core/order/fuse_weights.h"
#include "core/order/schedule.h"

#include <cstdint>
#include <span>
#include <vector>

namespace capo {

constexpr std::int32_t kAllLayers = -1;

struct Work {
  std::int32_t chunk = 0;
  std::int32_t microbatch = 0;
  std::int32_t layer = kAllLayers;
  std::uint32_t entry = 0;  ///< its place in the rank's order
  Kind kind = Kind::Forward;
  bool delayed = false;  ///< it is a backward whose weight gradient is work of its own
  bool joins = false;    ///< in an order it runs beside the work before it, in one composite
  bool beside = false;   ///< it runs in a composite
};

/// The work of an order; `delay` lists the rank's chunks.
[[nodiscard]] std::vector<Work> work_of(std::span<const Entry> order,
                                        const std::vector<Delay>& delay);

/// Whether a step is work; in a layer taken apart, the part that graphs capture is.
[[nodiscard]] constexpr bool is_work(const Step& step) {
  return is_compute(step.kind) && (step.part == Part::Whole || step.part == Part::PreDispatch);
}
[[nodiscard]] Work work_of(const Step& step, const std::vector<Delay>& delay);

}  // namespace capo
