// A rank's buffers and weights fit into the budget that was declared for it.
//
// Counted are the buffers of the plan at its peak and the weights that modules declare; not
// optimizer states, workspaces, or what the allocator loses. Needs the sizes of all layers, and
// warns where they are not declared. One finding for each rank. Tested by over_budget_test.cpp and
// tests/corpus/rules/B08/.

#include "core/rules/checks.h"
#include "core/rules/hazard_words.h"
#include "core/text/byte_size.h"

#include <fmt/format.h>

namespace capo::rules {

void over_budget(const Context& context, Diagnostics& out) {
  const PlanView& view = context.plan_view();
  const auto budget = context.options().plan.budget;
  if (!view.declared() || !budget) return;
  if (!view.table().sized()) {
    out.add({.rule = "B08",
             .family = Family::Buffers,
             .severity = Severity::Warning,
             .message = fmt::format("the budget of {} cannot be held against sizes that nobody "
                                    "declared",
                                    byte_words(*budget)),
             .help = {.text = "declare the bytes, or shapes and types, of all layers in model.json",
                      .edits = {}}});
    return;
  }
  const Wiring& wiring = *context.wirings().front();
  for (std::size_t r = 0; r < view.plan().ranks.size(); ++r) {
    const RankMemory& memory = view.plan().ranks[r];
    const std::int64_t needed = memory.peak() + memory.weights;
    if (needed <= *budget || !out.wants("B08")) continue;
    const Site site{.rank = static_cast<std::int32_t>(r), .entry = memory.peak_entry};
    const OrderView& order = context.order_of(wiring, site.rank);
    Diagnostic finding{.rule = "B08", .family = Family::Buffers};
    finding.message = fmt::format(
        "rank {} needs {} at {}, more than the budget of {}: {} of buffers and {} of weights", r,
        byte_words(needed),
        site_name(context, wiring, {site.rank, site.entry, order.entries[site.entry].kind}),
        byte_words(*budget), byte_words(memory.peak()), byte_words(memory.weights));
    finding.labels = {{order.entries[site.entry].span(), "the peak is reached here"}};
    finding.witness = {
        .kind = WitnessKind::Replay,
        .tasks = {site_reference(context, wiring,
                                 {site.rank, site.entry, order.entries[site.entry].kind})}};
    const std::int64_t least = view.memory()[r].lower_bound + memory.weights;
    finding.notes.push_back(
        {.text = fmt::format("no plan without hazards takes less than {} for this order",
                             byte_words(least)),
         .span = std::nullopt});
    if (least <= *budget && view.kind() == PlanKind::Te) {
      finding.help.text = "capo's own plan may fit: --plan safe";
    } else {
      finding.help.text = "fewer microbatches in flight, or smaller ones";
    }
    out.keep(std::move(finding));
  }
}

}  // namespace capo::rules
