// What a rank's graphs do, in the order in which they are launched: the sequence that a plan is
// made for, and that its memory is judged by.
//
// A piece of work is a forward, backward or weight gradient of all layers of a chunk, or of one of
// them where the chunk's layers run apart. Transfers are no work; they read what work made.

#pragma once

#include "core/graph/lowered.h"
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
  std::uint32_t entry = 0;  ///< of the rank's order
  Kind kind = Kind::Forward;
  bool delayed = false;  ///< of a backward: its weight gradient is work of its own
  bool joins = false;    ///< of an order's: runs beside the work before it, in one composite
  bool beside = false;   ///< runs in a composite
};

/// `delay` of each of the rank's chunks.
[[nodiscard]] std::vector<Work> work_of(std::span<const Entry> order,
                                        const std::vector<Delay>& delay);

/// Whether a step is work; of a layer taken apart, the part that graphs are captured of.
[[nodiscard]] constexpr bool is_work(const Step& step) {
  return is_compute(step.kind) && (step.part == Part::Whole || step.part == Part::PreDispatch);
}
[[nodiscard]] Work work_of(const Step& step, const std::vector<Delay>& delay);

}  // namespace capo
