// A stage sends its output to the next one, which is on the same rank.

#include "testing/edits/transfers.h"
#include "testing/faults/faults.h"

#include "core/graph/stage_map.h"

namespace capo::testing::faults {

BrokenCommunication send_to_itself(const Communication& sound, std::size_t choice) {
  if (sends_of(sound.schedule).empty()) return std::nullopt;
  const StageMap map(sound.schedule);
  const auto makers = entries_that(sound.schedule, [&](const Entry& entry, const RankOrder& rank) {
    if (entry.kind != Kind::Forward) return false;
    const auto here = static_cast<std::int32_t>(&rank - sound.schedule.ranks.data());
    const std::int32_t stage = map.stage_of(here, entry.chunk);
    const std::int32_t next = map.after(stage);
    return next != kNoStage && map.same_rank(stage, next);
  });
  const auto maker = chosen(makers, choice);
  if (!maker) return std::nullopt;
  Communication broken = sound;
  Entry send = broken.schedule.ranks[maker->rank].order[maker->at];
  send.kind = Kind::SendForward;
  const EntryPlace place = put_behind(broken.schedule, *maker, send);
  return {{broken, "T02", fault_place(broken.schedule, place)}};
}

}  // namespace capo::testing::faults
