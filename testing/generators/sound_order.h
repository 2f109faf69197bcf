// Orders that are sound, whether or not TransformerEngine can capture them, and those that it
// cannot.
//
//   [1, 1, -1, -1, -1.5, -1.5]     right, but two weight gradients of chunk 1 are outstanding at
//   once:
//                                  TE files both under the second backward
//
// Distribution: shape and entries as in draw_te_order.h; among the entries that may come next each
// is equally likely. For an uncapturable order there are at least two microbatches (two where one
// is drawn), one chunk (each equally likely) is made to delay, so that all have one layer, and one
// of its weight gradients but the last (each equally likely) has to wait until the next
// microbatch's backward has run.
//
// Shrinking: as simpler() says; of an uncapturable order, only to orders that are uncapturable too.

#pragma once

#include "testing/generators/dice.h"
#include "testing/generators/te_order.h"

namespace capo::testing {

[[nodiscard]] TeOrder draw_sound_order(Dice& dice);
[[nodiscard]] rc::Gen<TeOrder> sound_order();

[[nodiscard]] TeOrder draw_te_uncapturable_order(Dice& dice);
[[nodiscard]] rc::Gen<TeOrder> te_uncapturable_order();

/// Whether at some point two weight gradients of one chunk are outstanding.
[[nodiscard]] bool two_outstanding(const TeOrder& order);

}  // namespace capo::testing
