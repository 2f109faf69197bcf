// A composite has members, and its type is OVERLAP_F_B.
//
//   (0F0;1B0)B              PyTorch takes any type for a container
//   ()OVERLAP_F_B           and one without members
//
// Tested by composite_form_test.cpp and tests/corpus/rules/S09/.

#include "core/diag/diagnostics.h"
#include "core/rules/cell_fault.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"

#include <fmt/format.h>

namespace capo::rules {

void composite_form(const Context& context, Diagnostics& out) {
  report_cells(context, CellFault::Kind::WrongContainer, "S09", out, [](const CellFault&) {
    return std::pair(
        std::string("is a composite of a type other than OVERLAP_F_B"),
        std::string(
            "write `(<a>;<b>)OVERLAP_F_B`; PyTorch reads it and does not know what to run"));
  });
  report_cells(context, CellFault::Kind::EmptyComposite, "S09", out, [](const CellFault& fault) {
    return std::pair(fmt::format("is a composite without members, which PyTorch reads as {}",
                                 shown(fault.torch_reads)),
                     std::string("leave the cell empty for an idle slot"));
  });
}

}  // namespace capo::rules
