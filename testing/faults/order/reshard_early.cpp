// A chunk gives up its parameters right before its last computation.

#include "testing/edits/entries.h"
#include "testing/edits/transfers.h"
#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenOrder reshard_early(const Schedule& sound, std::size_t choice) {
  const EntryPlace some = chosen(compute_entries(sound), choice).value();
  const std::int32_t chunk = sound.ranks[some.rank].order[some.at].chunk;
  const std::vector<EntryPlace> all =
      entries_that(sound, [&](const Entry& entry, const RankOrder& rank) {
        return &rank == &sound.ranks[some.rank] && is_compute(entry.kind) && entry.chunk == chunk;
      });
  Schedule schedule = sound;
  EntryPlace last = all.back();
  put_before(schedule, last, {.chunk = chunk, .kind = Kind::Reshard});
  ++last.at;
  return {{schedule, "D05", fault_place(schedule, last)}};
}

}  // namespace capo::testing::faults
