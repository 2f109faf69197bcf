// A transfer is done a second time, at the end of its rank's order; the finding names the first one
// first.

#include "testing/edits/transfers.h"
#include "testing/faults/faults.h"

#include "core/graph/lowered.h"

namespace capo::testing::faults {

BrokenCommunication repeat_transfer(const Communication& sound, std::size_t choice) {
  const auto transfers = entries_that(
      sound.schedule, [](const Entry& entry, const RankOrder&) { return is_transfer(entry.kind); });
  const auto place = chosen(transfers, choice);
  if (!place) return std::nullopt;
  Communication broken = sound;
  auto& order = broken.schedule.ranks[place->rank].order;
  Entry again = order[place->at];
  again.group = Group::Alone;
  order.push_back(again);
  return {{broken, "T01", fault_place(broken.schedule, *place)}};
}

}  // namespace capo::testing::faults
