// UNSHARD, RESHARD and REDUCE_GRAD are actions of a whole stage and have no microbatch.
//
//   5REDUCE_GRAD7           PyTorch keeps the 7 and never looks at it
//
// Tested by surplus_microbatch_test.cpp and tests/corpus/rules/S10/.

#include "core/diag/diagnostics.h"
#include "core/rules/cell_fault.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"

namespace capo::rules {

void surplus_microbatch(const Context& context, Diagnostics& out) {
  report_cells(context, CellFault::Kind::SurplusMicrobatch, "S10", out, [](const CellFault&) {
    return std::pair(std::string("names a microbatch, but acts on a whole stage"),
                     std::string("leave the number of the microbatch out"));
  });
}

}  // namespace capo::rules
