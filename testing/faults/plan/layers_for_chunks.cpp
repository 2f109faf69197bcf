// Chunks that are each a chunk of the model become the layers of one: the gradient that the first
// layer hands back is then sent for longer than its memory is kept.

#include "testing/faults/faults.h"
#include "testing/faults/plan.h"

namespace capo::testing::faults {

BrokenPlan layers_for_chunks(const Declared& sound, std::size_t choice) {
  const Schedule& schedule = sound.schedule;
  // A first layer's backward, then another layer's, then the next of the first layer: the second
  // frees the gradient, the third takes the memory if nobody has before.
  std::vector<EntryPlace> candidates;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    std::optional<EntryPlace> first;
    bool another = false;
    const auto& order = schedule.ranks[r].order;
    for (std::size_t at = 0; at < order.size(); ++at) {
      if (order[at].kind != Kind::Backward) continue;
      if (order[at].chunk != 1) {
        another = true;
        continue;
      }
      if (first && another) candidates.push_back(*first);
      first = EntryPlace{.rank = r, .at = at};
      another = false;
    }
  }
  const auto sent = chosen(candidates, choice);
  if (!sent) return std::nullopt;
  Declared broken = sound;
  broken.options.plan.model_chunks = {schedule.ranks.front().chunks};
  return {{broken, "B04", fault_place(schedule, *sent)}};
}

}  // namespace capo::testing::faults
