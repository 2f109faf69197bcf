// An action names a microbatch that the step does not have.

#include "testing/edits/entries.h"
#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenOrder microbatch_beyond(const Schedule& sound, std::size_t choice) {
  const EntryPlace place = chosen(compute_entries(sound), choice).value();
  Schedule schedule = sound;
  schedule.ranks[place.rank].order[place.at].microbatch =
      sound.microbatches.value() + static_cast<std::int32_t>(choice / 7 % 3);
  return {{schedule, "S19", fault_place(schedule, place)}};
}

}  // namespace capo::testing::faults
