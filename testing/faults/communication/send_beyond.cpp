// The last stage sends its output on, or the first one its gradient.

#include "testing/edits/transfers.h"
#include "testing/faults/faults.h"

#include "core/graph/lowered.h"
#include "core/graph/stage_map.h"

namespace capo::testing::faults {

BrokenCommunication send_beyond(const Communication& sound, std::size_t choice) {
  if (sends_of(sound.schedule).empty()) return std::nullopt;
  const StageMap map(sound.schedule);
  const bool forward = choice % 2 == 0;
  const StageMap::Place& end = map.home(forward ? map.stages() - 1 : 0);
  const auto makers = entries_that(sound.schedule, [&](const Entry& entry, const RankOrder& rank) {
    const bool here = &rank == &sound.schedule.ranks[static_cast<std::size_t>(end.rank)];
    const bool makes = forward ? entry.kind == Kind::Forward : is_backward(entry.kind);
    return here && makes && entry.chunk == end.chunk;
  });
  const EntryPlace maker = chosen(makers, choice / 2).value();
  Communication broken = sound;
  Entry send = broken.schedule.ranks[maker.rank].order[maker.at];
  send.kind = forward ? Kind::SendForward : Kind::SendBackward;
  const EntryPlace place = put_behind(broken.schedule, maker, send);
  return {{broken, "T02", fault_place(broken.schedule, place)}};
}

}  // namespace capo::testing::faults
