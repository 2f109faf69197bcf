// What the faults of plans share: which forward takes over whose static input, and moving an entry.
//
//   F1.0 B1.0 F1.1      F1.1 gets the memory of F1.0's input, which B1.0 freed
//
// A plain queue for each rank, since all layers of sound_planned() look alike. Written apart from
// core/plan on purpose.

#pragma once

#include "testing/edits/entries.h"
#include "testing/generators/sound_declared.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace capo::testing::faults {

/// A forward whose static input another one had before.
struct TakeOver {
  EntryPlace maker;   ///< the forward whose sample made the input
  EntryPlace before;  ///< the forward that had it last
  EntryPlace taker;
};

/// Of all ranks, in the order of their takers.
[[nodiscard]] std::vector<TakeOver> take_overs(const Schedule& schedule);

/// The entry of that kind for the chunk and microbatch of the one at `place`, on its rank; nothing
/// if there is none.
[[nodiscard]] std::optional<EntryPlace> fellow(const Schedule& schedule, EntryPlace place,
                                               Kind kind);

/// Delayed weight gradients with a later backward on their rank.
struct PassedBy {
  EntryPlace weight;
  EntryPlace backward;  ///< the next one
};
[[nodiscard]] std::vector<PassedBy> weights_before_backwards(const Schedule& schedule);

/// The first entry of a kind, of one chunk or any.
[[nodiscard]] std::optional<std::size_t> first_of(const RankOrder& rank, Kind kind,
                                                  std::optional<std::int32_t> chunk = {});

/// Which module of the table the entry's chunk is.
[[nodiscard]] std::int32_t module_of(const Declared& declared, EntryPlace place);
/// Gives a chunk a module of its own: its old one, spoilt.
void give_module(Declared& declared, std::size_t rank, std::int32_t chunk,
                 const std::function<void(Module&)>& spoil);

/// Moves an entry to right behind a later one of its rank.
void move_behind(std::vector<Entry>& order, std::size_t from, std::size_t behind);

}  // namespace capo::testing::faults
