#include "core/frameworks/te/could_hurt.h"

#include <cstddef>
#include <deque>
#include <vector>

namespace capo {

// A forward hurts if it takes over the input of a graph whose weight gradient is still to come, a
// backward if it comes while the weight gradient of another is still to come.
bool te_could_hurt(const RankOrder& rank) {
  const std::vector<Delay> delay = resolved_delay(rank);
  struct Chunk {
    std::int32_t backwards = 0;
    std::int32_t weights = 0;
    bool waits = false;  // its last backward has run, and the weight gradient of that has not
  };
  struct Freed {
    std::size_t chunk;
    std::int32_t microbatch;
  };
  std::vector<Chunk> chunks(delay.size());
  std::deque<Freed> freed;
  std::size_t waiting = 0;  // how many chunks wait
  bool hurts = false;
  for (const Entry& entry : rank.order) {
    const auto at = entry.chunk.index();
    if (at >= delay.size()) return false;  // TE cannot capture such an order
    Chunk& chunk = chunks[at];
    if (entry.kind == Kind::Forward && !freed.empty()) {
      const Freed slot = freed.front();
      freed.pop_front();
      hurts = hurts ||
              (delay[slot.chunk] == Delay::Always && chunks[slot.chunk].weights <= slot.microbatch);
    } else if (entry.kind == Kind::Backward) {
      if (chunk.waits) return false;
      hurts = hurts || waiting > 0;
      freed.push_back({at, chunk.backwards++});
      chunk.waits = delay[at] == Delay::Always;
      waiting += chunk.waits ? 1 : 0;
    } else if (entry.kind == Kind::BackwardWeight) {
      ++chunk.weights;
      waiting -= chunk.waits ? 1 : 0;
      chunk.waits = false;
    }
  }
  return hurts;
}

}  // namespace capo
