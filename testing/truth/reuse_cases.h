// Cases of the truth campaign under TransformerEngine's own reuse of memory, drawn: an order that
// it captures, with a module whose weight gradient reads memory that it shares. Whoever is hurt is
// hurt by the order alone.
//
// Tested by tests/testing/truth/drawn_cases_test.cpp.

#pragma once

#include "testing/generators/dice.h"
#include "testing/truth/truth_case.h"

#include <functional>

namespace capo::testing {

/// Whether a case is the sort that is looked for.
using IsWanted = std::function<bool(const TruthCase&)>;

/// Somebody is hurt: drawn anew where capo accepts, and after eight such draws once more, whatever
/// that is; so it may be right after all.
[[nodiscard]] TruthCase draw_reuse_case(Dice& dice);
/// The same; `hurts` says of a case whether somebody is hurt. A case at which it breaks an
/// invariant of capo's own is the one: whoever judges it can name it.
[[nodiscard]] TruthCase draw_reuse_case(Dice& dice, const IsWanted& hurts);

/// Nobody is hurt, though some weight gradient comes later than right behind its backward, so that
/// other buffers could have taken over what it reads: what capo accepts by looking, and not by the
/// way it was made. Drawn anew until there is one, 64 times at most; then it is
/// draw_planned_case()'s.
[[nodiscard]] TruthCase draw_spared_case(Dice& dice);
[[nodiscard]] TruthCase draw_spared_case(Dice& dice, const IsWanted& spares);

}  // namespace capo::testing
