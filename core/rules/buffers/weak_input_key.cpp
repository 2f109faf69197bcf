// Graphs that share a static input agree on whether it needs a gradient.
//
// TE's key of an input is shape, type and layout, not requires_grad. The later graph gets the
// earlier one's sample: where that needs no gradient and the layer does, its backward hands back
// nothing, without an error. The other way round a gradient is made that nobody wants, which is a
// warning. One finding for each pair of modules. Tested by weak_input_key_test.cpp and
// tests/corpus/rules/B05/.

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
  std::map<std::int64_t, Owner> first;  // by address: whose sample it is
  std::set<std::pair<const Module*, const Module*>> reported;
  for (const Work& work : view.captured()[static_cast<std::size_t>(rank)]) {
    if (work.kind != Kind::Forward) continue;
    for_each_layer(view.table(), rank, work, [&](std::int32_t layer) {
      const Module* module = view.table().facts(rank, work.chunk, layer).module;
      if (module == nullptr) return;
      const BufferId id =
          view.table().id(rank, work.chunk, layer, work.microbatch, BufferKind::StaticInput);
      const Site site{.rank = rank, .entry = work.entry, .kind = work.kind};
      const Owner& owner =
          first.try_emplace(view.plan().address[id], Owner{module, site}).first->second;
      const bool agree =
          owner.module->flags.input_requires_grad == module->flags.input_requires_grad;
      if (agree || !reported.emplace(owner.module, module).second) return;
      const bool loses = module->flags.input_requires_grad;
      const Severity severity = loses ? Severity::Error : Severity::Warning;
      if (!out.wants("B05", severity)) return;
      Diagnostic finding{.rule = "B05", .family = Family::Buffers, .severity = severity};
      finding.message = fmt::format(
          "module `{}` at {} shares the static input that module `{}` made at {}, which {} "
          "gradient: its own {}",
          module->name, site_name(context, wiring, site), owner.module->name,
          site_name(context, wiring, owner.site), loses ? "needs no" : "needs a",
          loses ? "is lost, without an error" : "is computed for nobody");
      finding.labels = {{site_span(context, wiring, site), "takes the input over"},
                        {site_span(context, wiring, owner.site), "its sample decides"}};
      finding.witness = {.kind = WitnessKind::Replay,
                         .tasks = {site_reference(context, wiring, owner.site),
                                   site_reference(context, wiring, site)}};
      finding.help.text =
          "let both samples need a gradient, or give them shapes that TransformerEngine tells "
          "apart";
      out.keep(std::move(finding));
    });
  }
}

}  // namespace

void weak_input_key(const Context& context, Diagnostics& out) {
  const PlanView& view = context.plan_view();
  if (!view.declared() || view.kind() != PlanKind::Te) return;
  if (context.options().modules.list.size() < 2) return;  // one module is like itself
  for (std::size_t r = 0; r < view.captured().size(); ++r) {
    judge_rank(context, view, static_cast<std::int32_t>(r), out);
  }
}

}  // namespace capo::rules
