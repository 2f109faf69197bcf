// The search for the best placement, the chunks that recompute and the orders together: an outer
// search over variants of a problem, each of which is searched for orders (search.h).
//
//   look      every setting of rules and a short walk, for placements of known shapes and for the
//             earliest ranks that recompute first, then for neighbours of the best: two stages have
//             changed places, or ranks, or some stages stand the other way round, or a chunk
//             recomputes that did not, or the other way round. A neighbour also begins with the
//             tasks of the one before by the times at which they began there, which is an order of
//             any placement
//   halve     of the best, half and half again go on, with twice as long walks each time
//   search    the best one is searched in full, from the orders that it has
//
// One epoch after the other does all three, each with twice as much as the one before, so that
// about half of all goes into the full search of what seems best, however long it takes. The first
// epoch searches the placements that the caller names in full as well, with the published orders
// that are starts of theirs. What a bound of its own keeps above the best so far is left out.
//
// For a step of many microbatches a shorter one is looked at, and the best orders are made longer.
// If there are few variants, all of them are looked at, and the least of their bounds is a bound.
// Else a bound of any choice of chunks counts the times of none that recompute, and the memory of
// all that do.
//
// The result is, like that of search(), a function of the problem, the starts, the seed and the
// number of moves, whatever the number of threads. Tested by variants_test.cpp.

#pragma once

#include "optimise/bounds.h"
#include "optimise/choices.h"
#include "optimise/problem.h"
#include "optimise/search.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace capo::optimise {

struct FoundVariant {
  Problem problem;            ///< of the placement that was found
  SimulationOptions options;  ///< with the chunks that recompute
  Found found;
  std::size_t tried = 0;  ///< so many variants
};

/// The bounds of any variant. If they are few, it also looks at each, with so many states of
/// lower_bounds() for all together; 0: at none.
[[nodiscard]] LowerBounds bounds_of_variants(
    const Variants& variants, std::uint64_t states = 0, unsigned threads = 1,
    const std::function<bool()>& stopped = [] { return false; });

/// `how.bound` and `how.better_bound` are those of any variant. nullopt if no orders were found.
/// Precondition: one of the variants of the frame's placement has orders (why_impossible()).
[[nodiscard]] std::optional<FoundVariant> search_variants(
    const Variants& variants, const SearchOptions& how,
    const std::function<void(const Found&)>& tell);

}  // namespace capo::optimise
