// A weight gradient comes behind the forward that takes its input over.

#include "testing/faults/faults.h"
#include "testing/faults/plan.h"

namespace capo::testing::faults {

BrokenPlan delay_weight_past_forward(const Declared& sound, std::size_t choice) {
  std::vector<TakeOver> candidates = take_overs(sound.schedule);
  std::erase_if(candidates, [&](const TakeOver& one) {
    return !fellow(sound.schedule, one.before, Kind::BackwardWeight);
  });
  const auto slip = chosen(candidates, choice);
  if (!slip) return std::nullopt;
  Declared broken = sound;
  const EntryPlace weight = *fellow(sound.schedule, slip->before, Kind::BackwardWeight);
  move_behind(broken.schedule.ranks[weight.rank].order, weight.at, slip->taker.at);
  return {{broken, "B01", fault_place(broken.schedule, slip->before)}};
}

}  // namespace capo::testing::faults
