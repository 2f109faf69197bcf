// One backward of a chunk that runs its backwards whole is taken apart, its weight gradient right
// behind it.

#include "testing/edits/transfers.h"
#include "testing/faults/faults.h"

#include <algorithm>

namespace capo::testing::faults {

BrokenModules half_delayed(const Declared& sound, std::size_t choice) {
  if (*sound.schedule.microbatches < 2) return std::nullopt;
  const auto backwards =
      entries_that(sound.schedule, [](const Entry& entry, const RankOrder& rank) {
        return entry.kind == Kind::Backward &&
               (*rank.delay)[static_cast<std::size_t>(entry.chunk) - 1] == Delay::Never;
      });
  const auto place = chosen(backwards, choice);
  if (!place) return std::nullopt;
  Declared broken = sound;
  RankOrder& rank = broken.schedule.ranks[place->rank];
  Entry& half = rank.order[place->at];
  half.kind = Kind::BackwardInput;
  const std::int32_t chunk = half.chunk;
  const std::int32_t microbatch = half.microbatch;
  (*rank.delay)[static_cast<std::size_t>(chunk) - 1] = Delay::Mixed;
  put_behind(broken.schedule, *place,
             {.chunk = chunk, .microbatch = microbatch, .kind = Kind::BackwardWeight});

  // The witness begins with the chunk's first backward, which a later one is at odds with.
  const auto first_of = [&](Kind kind) {
    return std::find_if(rank.order.begin(), rank.order.end(), [&](const Entry& entry) {
      return entry.kind == kind && entry.chunk == chunk;
    });
  };
  const auto first = std::min(first_of(Kind::Backward), first_of(Kind::BackwardInput));
  const auto at = static_cast<std::size_t>(first - rank.order.begin());
  return {{broken, "C08", fault_place(broken.schedule, {.rank = place->rank, .at = at})}};
}

}  // namespace capo::testing::faults
