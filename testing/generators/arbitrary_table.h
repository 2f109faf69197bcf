// PyTorch tables of every kind that their reader gives back unchanged: a schedule, sound or not,
// and the declarations to read its text with.
//
// The invariants: microbatches are named or left out (`0F`), under a custom placement; a rank holds
// its stages in ascending order, which are the declared ones and those of its row; a chunk delays
// exactly as its actions show; nothing is said about layers and replay; some row has an entry, and
// no row is one idle slot alone.
//
// Distribution: 1 to 4 ranks, rows of 0 to 10 entries over stages 0 to 5, composites as in
// arbitrary_schedule.h. Of eleven entries two are F, two B, and one each I, W, SEND_F, RECV_B,
// UNSHARD, REDUCE_GRAD and an idle slot; I stands for B where a stage splits every microbatch. A
// microbatch (0 to 5) is left out once in 15. In half of the tables 1 to 6 stages are dealt out to
// ranks at random and declared; else each row has what it has. Microbatches (1 to 8) and, where
// placement does not say it, stages (1 to 20) are declared with even chances. All numbers are
// equally likely; a row that is one idle slot alone gets another, and where no row has an entry the
// first one gets 0F0.
//
// Shrinking: away goes a row, an action, a composite, a declaration.

#pragma once

#include "core/frameworks/torch/csv_reader.h"
#include "core/order/schedule.h"
#include "testing/generators/arbitrary_schedule.h"
#include "testing/generators/dice.h"

#include <iosfwd>

namespace capo::testing {

struct TableCase {
  Schedule schedule;
  TorchDeclarations declarations;
};

[[nodiscard]] TableCase draw_arbitrary_table(Dice& dice);
[[nodiscard]] rc::Gen<TableCase> arbitrary_table();

void showValue(const TableCase& table, std::ostream& out);

}  // namespace capo::testing
