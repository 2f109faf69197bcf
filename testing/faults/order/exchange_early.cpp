// A forward dispatches its tokens before it has made them.

#include "testing/edits/entries.h"
#include "testing/edits/transfers.h"
#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenOrder exchange_early(const Schedule& sound, std::size_t choice) {
  const std::vector<EntryPlace> forwards = entries_that(
      sound,
      [](const Entry& entry, const RankOrder& /*rank*/) { return entry.kind == Kind::Forward; });
  Schedule schedule = sound;
  const EntryPlace forward = chosen(forwards, choice).value();
  Entry dispatch = sound.ranks[forward.rank].order[forward.at];
  dispatch.kind = Kind::DispatchForward;
  const EntryPlace place = put_before(schedule, forward, dispatch);
  return {{schedule, "D06", fault_place(schedule, place)}};
}

}  // namespace capo::testing::faults
