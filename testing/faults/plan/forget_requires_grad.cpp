// A chunk's input needs no gradient, and another chunk takes that input over.

#include "testing/faults/faults.h"
#include "testing/faults/plan.h"

#include <algorithm>

namespace capo::testing::faults {

BrokenPlan forget_requires_grad(const Declared& sound, std::size_t choice) {
  const auto chunk_of = [&](EntryPlace place) {
    return sound.schedule.ranks[place.rank].order[place.at].chunk;
  };
  const std::vector<TakeOver> all = take_overs(sound.schedule);
  std::vector<TakeOver> candidates = all;
  std::erase_if(candidates,
                [&](const TakeOver& one) { return chunk_of(one.maker) == chunk_of(one.taker); });
  const auto slip = chosen(candidates, choice);
  if (!slip) return std::nullopt;
  Declared broken = sound;
  give_module(broken, slip->maker.rank, chunk_of(slip->maker),
              [](Module& module) { module.flags.input_requires_grad = false; });
  // Shown is the first that the two modules share.
  const auto shown = std::find_if(candidates.begin(), candidates.end(), [&](const TakeOver& one) {
    return one.maker.rank == slip->maker.rank && chunk_of(one.maker) == chunk_of(slip->maker) &&
           module_of(sound, one.taker) == module_of(sound, slip->taker);
  });
  return {{broken, "B05", fault_place(broken.schedule, shown->maker)}};
}

}  // namespace capo::testing::faults
