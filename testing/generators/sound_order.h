// Orders of one rank that are sound: any, those that TransformerEngine can capture, and those that
// it cannot.
//
//   [1, 1, 2, -2, -2.5, -1, 2, -1, -2, -2.5]     capturable
//   [1, 1, -1, -1, -1.5, -1.5]                   right, but two weight gradients of chunk 1 are
//                                                outstanding at once: TE files both under the
//                                                second backward
//
// TE files a weight gradient under the newest backward of its chunk. In a capturable order every
// backward of a chunk that delays is therefore followed by its own weight gradient before the
// chunk's next backward.
//
// Distribution: draw_te_order.h says how shape and entries are drawn; among the entries that may
// come next each is equally likely. An uncapturable order has at least two microbatches (two if one
// is drawn); one chunk (each equally likely) is made to delay, so that all have one layer, and one
// of its weight gradients but the last (each equally likely) waits until the next microbatch's
// backward has run.
//
// Shrinking: simpler() says how, and a capturable order stays capturable; an uncapturable order
// shrinks only to orders that are uncapturable too.
// Tested by sound_order_test.cpp and te_capturable_order_test.cpp.

#pragma once

#include "testing/generators/dice.h"
#include "testing/generators/te_order.h"

namespace capo::testing {

[[nodiscard]] TeOrder draw_sound_order(Dice& dice);
[[nodiscard]] rc::Gen<TeOrder> sound_order();

[[nodiscard]] TeOrder draw_te_capturable_order(Dice& dice);
[[nodiscard]] rc::Gen<TeOrder> te_capturable_order();

[[nodiscard]] TeOrder draw_te_uncapturable_order(Dice& dice);
[[nodiscard]] rc::Gen<TeOrder> te_uncapturable_order();

/// Whether two weight gradients of one chunk are outstanding at some point.
[[nodiscard]] bool two_outstanding(const TeOrder& order);

}  // namespace capo::testing
