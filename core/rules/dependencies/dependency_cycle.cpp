// The orders of all ranks together can be executed: no computation waits, around some corner, for
// itself.
//
//   rank 0: F1.0 B1.0 F1.1 B1.1         rank 0 wants microbatch 0 back before it sends 1,
//   rank 1: F1.1 F1.0 B1.0 B1.1         and rank 1 wants 1 before it works on 0
//
// Each order may be right by itself. The finding stands at the first computation that never runs;
// the witness is the shortest cycle: any distance along one
// rank's order counts as one step. How ranks communicate is left out here; what goes wrong there is
// the transfer rules'. Where a rank contradicts itself, stage_order has said so and this rule is
// silent. Tested by dependency_cycle_test.cpp and tests/corpus/rules/D04/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/judged_before.h"
#include "core/rules/task_words.h"
#include "core/rules/wiring.h"

#include <fmt/format.h>

#include <cstdint>
#include <vector>

namespace capo::rules {

void dependency_cycle(const Context& context, Diagnostics& out) {
  if (context.schedule().ranks.size() < 2) return;
  for (const auto& wiring : context.wirings()) {
    // A composite by itself may be what cannot be executed: stage_order names it.
    if (wiring->executable() || wiring->direct_execution().finishes()) continue;
    const TaskGraph& graph = wiring->direct();
    const auto cycle = shortest_cycle(graph, wiring->direct_execution());
    const std::vector<std::int32_t> ranks = words::ranks_of(graph, cycle);
    if (ranks.size() < 2 || judged_before(context, *wiring, ranks)) continue;
    const TaskId first = words::first_stuck(graph, wiring->direct_execution());
    const auto place = [&] { return words::task_span(context, *wiring, graph, first); };
    if (!out.wants_at("D04", place)) continue;
    Diagnostic finding{.rule = "D04", .family = Family::Dependencies};
    finding.message =
        fmt::format("{} wait for each other: their orders cannot be {} together",
                    words::list_of(ranks), wiring->replay() ? "replayed" : "executed");
    finding.witness.kind = WitnessKind::Path;
    words::describe_waits(context, *wiring, graph, cycle, first, finding);
    finding.help.text = "move one of these in its rank's order, so that the circle opens";
    out.keep(std::move(finding));
  }
}

}  // namespace capo::rules
