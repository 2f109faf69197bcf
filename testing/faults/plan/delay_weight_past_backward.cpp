// A weight gradient comes behind the next backward of its rank, whichever chunk that is of.

#include "testing/faults/faults.h"
#include "testing/faults/plan.h"

namespace capo::testing::faults {

BrokenPlan delay_weight_past_backward(const Declared& sound, std::size_t choice) {
  const auto slip = chosen(weights_before_backwards(sound.schedule), choice);
  if (!slip) return std::nullopt;
  Declared broken = sound;
  const EntryPlace backward = *fellow(sound.schedule, slip->weight, Kind::Backward);
  move_behind(broken.schedule.ranks[slip->weight.rank].order, slip->weight.at, slip->backward.at);
  return {{broken, "B02", fault_place(broken.schedule, backward)}};
}

}  // namespace capo::testing::faults
