// A backward and its forward have changed places.

#include "testing/edits/entries.h"
#include "testing/faults/faults.h"

#include <utility>

namespace capo::testing::faults {

BrokenOrder backward_before_forward(const Schedule& sound, std::size_t choice) {
  const auto backwards = entries_that(sound, [](const Entry& entry, const RankOrder&) {
    return entry.kind == Kind::Backward || entry.kind == Kind::BackwardInput;
  });
  const EntryPlace place = chosen(backwards, choice).value();
  Schedule schedule = sound;
  RankOrder& rank = schedule.ranks[place.rank];
  Entry& backward = rank.order[place.at];
  const std::size_t at =
      find(rank,
           {.kind = Kind::Forward, .chunk = backward.chunk, .microbatch = backward.microbatch})
          .value();
  std::swap(backward.kind, rank.order[at].kind);
  return {{schedule, "D01", fault_place(schedule, {.rank = place.rank, .at = at})}};
}

}  // namespace capo::testing::faults
