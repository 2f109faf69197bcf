// A chunk's output that needs a gradient changes its place among the others.

#include "testing/faults/faults.h"
#include "testing/faults/plan.h"

namespace capo::testing::faults {

BrokenPlan swap_outputs(const Declared& sound, std::size_t choice) {
  const auto backward =
      chosen(entries_that(sound.schedule,
                          [](const Entry& entry, const RankOrder& rank) {
                            return entry.kind == Kind::Backward &&
                                   entry.chunk != rank.order[*first_of(rank, Kind::Backward)].chunk;
                          }),
             choice);
  if (!backward) return std::nullopt;
  Declared broken = sound;
  const RankOrder& rank = broken.schedule.ranks[backward->rank];
  give_module(broken, backward->rank, rank.order[backward->at].chunk,
              [](Module& module) { module.output_position = 1; });
  const EntryPlace first{.rank = backward->rank, .at = *first_of(rank, Kind::Backward)};
  return {{broken, "B06", fault_place(broken.schedule, first)}};
}

}  // namespace capo::testing::faults
