// The cells of a PyTorch table that are readable and yet wrong, and the finding a rule makes of
// one.

#pragma once

#include "core/diag/diagnostics.h"
#include "core/rules/context.h"
#include "core/text/scan.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace capo::rules {

/// Calls `describe(fault)`, which returns {what, help}, for every cell with a fault of this kind.
template <typename Describe>
void report_cells(const Context& context, CellFault::Kind kind, std::string_view rule,
                  Diagnostics& out, Describe&& describe) {
  const CellFault* before = nullptr;
  for (const CellFault& fault : context.input().cell_faults) {
    if (fault.kind != kind) continue;
    // Two members of one composite with the same fault are one finding.
    const bool again =
        before != nullptr && before->rank == fault.rank && before->cell == fault.cell;
    before = &fault;
    if (again || !out.wants(rule)) continue;
    const std::string cell(context.input().source.slice(fault.span));
    const std::string name = cell.empty() ? "the empty cell" : shown(cell);
    const std::string where = fmt::format(" at index {} of rank {} ", fault.cell, fault.rank);
    auto [what, help] = describe(fault);
    out.keep({.rule = rule,
              .message = fmt::format("{}{}{}", name, where, what),
              .labels = {{fault.span, ""}},
              .help = {.text = std::move(help)},
              .witness = {.tasks = {{.rank = fault.rank,
                                     .index = fault.cell,
                                     .text = cell,
                                     .action = fault.torch_reads}}}});
  }
}

}  // namespace capo::rules
