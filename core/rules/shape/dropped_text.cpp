// PyTorch reads a cell completely.
//
//   0F1.5                   PyTorch reads 0F1 and drops the rest, because its pattern is anchored
//   at 0F0 1B0                 the beginning of the cell only 2BW0                    an older name
//   of the whole backward: read as `2B`, without a microbatch
//
// Tested by dropped_text_test.cpp and tests/corpus/rules/S08/.

#include "core/diag/diagnostics.h"
#include "core/rules/cell_fault.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"

#include <fmt/format.h>

namespace capo::rules {

void dropped_text(const Context& context, Diagnostics& out) {
  report_cells(context, CellFault::Kind::DroppedText, "S08", out, [](const CellFault& fault) {
    return std::pair(
        fmt::format("is read by PyTorch as {}, and the rest is dropped", shown(fault.torch_reads)),
        std::string("one action a cell, `<stage><type><microbatch>`; the members of a "
                    "composite are separated by `;`"));
  });
}

}  // namespace capo::rules
