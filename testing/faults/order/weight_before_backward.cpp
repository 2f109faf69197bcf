// A weight gradient and its backward have changed places.

#include "testing/edits/entries.h"
#include "testing/faults/faults.h"

#include <utility>

namespace capo::testing::faults {

BrokenOrder weight_before_backward(const Schedule& sound, std::size_t choice) {
  const auto place = chosen(
      entries_that(sound, [](const Entry& entry,
                             const RankOrder&) { return entry.kind == Kind::BackwardWeight; }),
      choice);
  if (!place) return std::nullopt;
  Schedule schedule = sound;
  RankOrder& rank = schedule.ranks[place->rank];
  Entry& weight = rank.order[place->at];
  Action wanted{.kind = Kind::Backward, .chunk = weight.chunk, .microbatch = weight.microbatch};
  auto at = find(rank, wanted);
  wanted.kind = Kind::BackwardInput;
  if (!at) at = find(rank, wanted);
  std::swap(weight.kind, rank.order[at.value()].kind);
  return {{schedule, "D02", fault_place(schedule, {.rank = place->rank, .at = *at})}};
}

}  // namespace capo::testing::faults
