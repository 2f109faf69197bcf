// A microbatch that a mixed chunk runs backward in one way is run in the other as well, at the end
// of the order. The witness begins with the earlier one.

#include "testing/edits/entries.h"
#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenOrder whole_and_split(const Schedule& sound, std::size_t choice) {
  const auto places = entries_that(sound, [](const Entry& entry, const RankOrder& rank) {
    const bool backward = entry.kind == Kind::Backward || entry.kind == Kind::BackwardInput;
    return backward && (*rank.delay)[static_cast<std::size_t>(entry.chunk) - 1] == Delay::Mixed;
  });
  const auto place = chosen(places, choice);
  if (!place) return std::nullopt;
  Schedule schedule = sound;
  auto& order = schedule.ranks[place->rank].order;
  Entry again = order[place->at];
  again.kind = again.kind == Kind::Backward ? Kind::BackwardInput : Kind::Backward;
  again.group = Group::Alone;
  order.push_back(again);
  return {{schedule, "S22", fault_place(schedule, *place)}};
}

}  // namespace capo::testing::faults
