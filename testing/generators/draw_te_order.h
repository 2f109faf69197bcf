// How the generators of TE lists draw one: first its shape, then entry by entry.
//
// Shape: 1 to 4 chunks and 1 to 5 microbatches, each number equally likely; every chunk delays its
// weight gradient or not, with equal chances. Where none delays, each chunk has 1 to 3 layers
// (equally likely) in half of the orders; else one, which is all that TE allows.
//
// Entries: each that may come next is equally likely. The generator says which may; F(k) of a chunk
// precedes its B(k), and B(k) its W(k), in any case.

#pragma once

#include "testing/generators/dice.h"
#include "testing/generators/te_order.h"

#include <cstdint>
#include <functional>

namespace capo::testing {

[[nodiscard]] TeOrder draw_te_shape(Dice& dice);

/// Counts the entries of a chunk that have run.
struct ChunkProgress {
  std::int32_t forwards = 0;
  std::int32_t backwards = 0;
  std::int32_t weights = 0;
};

/// Whether the next action of this kind may come now, beyond what soundness asks; chunks from 1.
using MayFollow = std::function<bool(Kind kind, std::int32_t chunk, const ChunkProgress& done)>;

/// Fills the list of a shape. What `may_follow` refuses must become possible before all else has
/// run.
[[nodiscard]] TeOrder draw_te_entries(Dice& dice, TeOrder shape, const MayFollow& may_follow);

}  // namespace capo::testing
