// An action names another microbatch than is meant, so that its own lacks it; the finding is beside
// the actions that the microbatch still has.

#include "testing/edits/entries.h"
#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenOrder other_microbatch(const Schedule& sound, std::size_t choice) {
  if (sound.microbatches.value_or(0) < 2) return std::nullopt;
  const EntryPlace place = chosen(compute_entries(sound), choice).value();
  Schedule schedule = sound;
  RankOrder& rank = schedule.ranks[place.rank];
  Entry& entry = rank.order[place.at];
  const Action meant = entry.action();
  entry.microbatch = (meant.microbatch + 1) % *sound.microbatches;
  const std::size_t last = lack_of(rank, meant).value();
  return {{schedule, "S21", fault_place(schedule, {.rank = place.rank, .at = last})}};
}

}  // namespace capo::testing::faults
