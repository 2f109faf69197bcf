// Schedules of every kind that the .order and JSON forms can say, sound or not: what printing and
// reading back must not change. The invariants that each value keeps are those of representable.h.
//
// Distribution: all numbers in a range, and all words that stand for one thing, are equally likely.
// 1 to 4 ranks, named or counted (even chances, but counted where no entry has a microbatch), each
// of the six topologies, custom stages from 0 to 19, orders of 0 to 12 entries. Of eleven entries
// six are F, B, I or W (where microbatches are counted, B for I), two transfers, one a dispatch or
// combine, one of a whole stage, one an idle slot; chunks are 1 to 4, once in 16 one of 13 to
// 100,000; microbatches are 0 to 5, once in 20 one of 1,000 to 1,000,000. Composites are those of
// draw_composites(). A rank declares its chunks (0 to 5), its delay (each chunk Never, Always or,
// where microbatches are named, Mixed) and a replay order with chances 1/2, 1/2 and 1/4, its chunks
// in any case where its layers are a list; under custom stages it has 0 to 5 chunks whether they
// are declared or, as by the row of a table, not. Layers are unstated in two of five ranks, in one
// each None, a count or a list of 1 to 5, counts being 0 to 3. Microbatches (1 to 8) and stages (1
// to 20) of the schedule are declared with even chances. One rank in four has 1 to 3 resets, each
// of all chunks (once in five) or of chunk 1 to 4, then half of them of a microbatch from 0 to 5.
//
// Shrinking: away goes a rank, an entry, a replay order, a reset, a composite, a declaration; the
// topology becomes independent, a chunk 1, a microbatch 0.

#pragma once

#include "core/order/schedule.h"
#include "testing/generators/dice.h"

#include <iosfwd>

namespace capo {

/// For rapidcheck: as .order text, to paste.
void showValue(const Schedule& schedule, std::ostream& out);

namespace testing {

[[nodiscard]] Schedule draw_arbitrary_schedule(Dice& dice);
[[nodiscard]] rc::Gen<Schedule> arbitrary_schedule();

/// Composites of 2 or 3 neighbours (even chances), one begun at one in six of the entries that are
/// in none; idle slots and transfers stay out, and end one, as the end of the order does.
void draw_composites(Dice& dice, std::vector<Entry>& order);

}  // namespace testing
}  // namespace capo
