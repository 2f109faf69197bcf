// An action runs a second time, at the end of its order. Its gradient would be added twice, and
// every check that PyTorch makes ahead of time passes. The witness begins with the first run.

#include "testing/edits/entries.h"
#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenOrder double_action(const Schedule& sound, std::size_t choice) {
  const EntryPlace place = chosen(compute_entries(sound), choice).value();
  Schedule schedule = sound;
  auto& order = schedule.ranks[place.rank].order;
  Entry again = order[place.at];
  again.group = Group::Alone;
  order.push_back(again);
  return {{schedule, "S20", fault_place(schedule, place)}};
}

}  // namespace capo::testing::faults
