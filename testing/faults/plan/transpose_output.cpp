// A chunk's output is transposed.

#include "testing/faults/faults.h"
#include "testing/faults/plan.h"

namespace capo::testing::faults {

BrokenPlan transpose_output(const Declared& sound, std::size_t choice) {
  const auto forward = chosen(
      entries_that(sound.schedule,
                   [](const Entry& entry, const RankOrder& rank) {
                     return entry.kind == Kind::Forward &&
                            &entry == &rank.order[*first_of(rank, Kind::Forward, entry.chunk)];
                   }),
      choice);
  Declared broken = sound;
  const std::int32_t chunk = sound.schedule.ranks[forward->rank].order[forward->at].chunk;
  give_module(broken, forward->rank, chunk,
              [](Module& module) { module.flags.contiguous_output = false; });
  return {{broken, "B07", fault_place(broken.schedule, *forward)}};
}

}  // namespace capo::testing::faults
