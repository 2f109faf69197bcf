// Orders that are sound and that TransformerEngine can capture.
//
//   [1, 1, 2, -2, -2.5, -1, 2, -1, -2, -2.5]
//
// TE files a weight gradient under the newest backward of its chunk, so beyond soundness every
// backward of a chunk that delays is followed by its own weight gradient before the chunk's next
// backward.
//
// Distribution: shape and entries as in draw_te_order.h, 1 to 4 chunks, 1 to 5 microbatches, each
// chunk delaying or not; among the entries that may come next each is equally likely.
//
// Shrinking: as simpler() says: away goes a whole microbatch, a whole chunk, a delay, a layer; then
// the entries move towards microbatch after microbatch. Every value on the way is capturable.

#pragma once

#include "testing/generators/dice.h"
#include "testing/generators/te_order.h"

namespace capo::testing {

[[nodiscard]] TeOrder draw_te_capturable_order(Dice& dice);
[[nodiscard]] rc::Gen<TeOrder> te_capturable_order();

}  // namespace capo::testing
