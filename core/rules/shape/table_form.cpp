// A compute-only table holds no transfers, and a table with transfers holds no idle slots.
//
//   0F0,0SEND_F0            read as compute-only: PyTorch adds the transfers itself and stops here
//   0F0,,0B0                read with transfers: PyTorch's runtime has no idle action
//
// Tested by table_form_test.cpp and tests/corpus/rules/S11/.

#include "core/diag/diagnostics.h"
#include "core/rules/cell_fault.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"

namespace capo::rules {

void table_form(const Context& context, Diagnostics& out) {
  report_cells(context, CellFault::Kind::TransferInCompute, "S11", out, [](const CellFault&) {
    return std::pair(
        std::string("is a transfer in a compute-only table"),
        std::string("read the table with `--csv comms`, or leave the transfers to PyTorch"));
  });
  report_cells(context, CellFault::Kind::IdleSlot, "S11", out, [](const CellFault&) {
    return std::pair(
        std::string("is an idle slot in a table with transfers"),
        std::string("remove the empty cell: idle slots belong to compute-only tables"));
  });
}

}  // namespace capo::rules
