// Graphs that share incoming gradients have the output that needs one at the same position.
//
// TE's key of outputs is the shapes, types and layouts of those that need a gradient, not where
// they stand among the others. A graph that returns (y, aux) then shares the tuple of one that
// returns (aux, y), and its backward reads the zeros of aux. One finding for each pair of modules.
// Tested by weak_output_key_test.cpp and tests/corpus/rules/B06/.

#include "core/plan/accesses.h"
#include "core/rules/checks.h"
#include "core/rules/hazard_words.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

namespace capo::rules {

namespace {

struct Owner {
  const Module* module;
  Site site;
};

void judge_rank(const Context& context, const PlanView& view, std::int32_t rank, Diagnostics& out) {
  const Wiring& wiring = *context.wirings().front();
  std::map<std::int64_t, Owner> first;  // by address: who made the tuple
  std::set<std::pair<const Module*, const Module*>> reported;
  for (const Work& work : view.captured()[static_cast<std::size_t>(rank)]) {
    if (!is_backward(work.kind)) continue;
    for_each_layer(view.table(), rank, work, [&](std::int32_t layer) {
      const Module* module = view.table().facts(rank, work.chunk, layer).module;
      if (module == nullptr) return;
      const BufferId id =
          view.table().id(rank, work.chunk, layer, work.microbatch, BufferKind::GradOutput);
      const Site site{.rank = rank, .entry = work.entry, .kind = work.kind};
      const Owner& owner =
          first.try_emplace(view.plan().address[id], Owner{module, site}).first->second;
      if (owner.module->output_position == module->output_position ||
          !reported.emplace(owner.module, module).second || !out.wants("B06")) {
        return;
      }
      Diagnostic finding{.rule = "B06", .family = Family::Buffers};
      finding.message = fmt::format(
          "module `{}` at {} shares the incoming gradients of module `{}` at {}, whose output {} "
          "needs one where its own is output {}: it reads zeros",
          module->name, site_name(context, wiring, site), owner.module->name,
          site_name(context, wiring, owner.site), owner.module->output_position,
          module->output_position);
      finding.labels = {{site_span(context, wiring, site), "reads the wrong gradient"},
                        {site_span(context, wiring, owner.site), "its tuple is shared"}};
      finding.witness = {.kind = WitnessKind::Replay,
                         .tasks = {site_reference(context, wiring, owner.site),
                                   site_reference(context, wiring, site)}};
      finding.help.text = "return the outputs of both modules in the same order";
      out.keep(std::move(finding));
    });
  }
}

}  // namespace

void weak_output_key(const Context& context, Diagnostics& out) {
  const PlanView& view = context.plan_view();
  if (!view.declared() || view.kind() != PlanKind::Te) return;
  if (context.options().modules.list.size() < 2) return;  // one module is like itself
  for (std::size_t r = 0; r < view.captured().size(); ++r) {
    judge_rank(context, view, static_cast<std::int32_t>(r), out);
  }
}

}  // namespace capo::rules
