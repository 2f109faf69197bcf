// An action of a microbatch is missing; the finding is beside the ones that the microbatch still
// has. Where it was the only forward of its rank, the rank runs nothing forward, which is said
// first.

#include "testing/edits/entries.h"
#include "testing/faults/faults.h"

#include <algorithm>

namespace capo::testing::faults {

BrokenOrder drop_action(const Schedule& sound, std::size_t choice) {
  const EntryPlace place = chosen(compute_entries(sound), choice).value();
  Schedule schedule = sound;
  RankOrder& rank = schedule.ranks[place.rank];
  const Entry gone = rank.order[place.at];
  if (gone.group == Group::Opens && place.at + 1 < rank.order.size() &&
      rank.order[place.at + 1].group == Group::Continues) {
    rank.order[place.at + 1].group = Group::Opens;
  }
  rank.order.erase(rank.order.begin() + static_cast<std::ptrdiff_t>(place.at));
  const bool forward = std::any_of(rank.order.begin(), rank.order.end(),
                                   [](const Entry& entry) { return entry.kind == Kind::Forward; });
  if (!forward)
    return {{schedule, "S06", FaultPlace{.rank = static_cast<std::int32_t>(place.rank)}}};
  const std::size_t last = lack_of(rank, gone.action()).value();
  return {{schedule, "S21", fault_place(schedule, {.rank = place.rank, .at = last})}};
}

}  // namespace capo::testing::faults
