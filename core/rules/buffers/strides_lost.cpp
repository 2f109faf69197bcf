// Static tensors are contiguous: a graph's weak handle keeps address, type and shape, not strides.
//
// A transposed, expanded or sliced output is then read as if it were contiguous, permuted or
// foreign data; so is the gradient of an input whose sample is not contiguous. One finding for each
// module and end. Tested by strides_lost_test.cpp and tests/corpus/rules/B07/.

#include "core/plan/accesses.h"
#include "core/rules/checks.h"
#include "core/rules/hazard_words.h"

#include <fmt/format.h>

#include <set>

namespace capo::rules {

namespace {

class Judge {
 public:
  Judge(const Context& context, Diagnostics& out) : context_(context), out_(out) {}

  void look_at(const Module& module, const Site& site) {
    if (!judged_.insert(&module).second) return;
    if (!module.flags.contiguous_output) report(module, site, "output", "what is read of it");
    if (!module.flags.contiguous_input) {
      report(module, site, "input", "what is read of its gradient");
    }
  }

 private:
  void report(const Module& module, const Site& site, std::string_view end,
              std::string_view permuted) {
    if (!out_.wants("B07")) return;
    const Wiring& wiring = *context_.wirings().front();
    Diagnostic finding{.rule = "B07", .family = Family::Buffers};
    finding.message = fmt::format(
        "the {} of module `{}`, first at {}, is not contiguous, and its graph forgets the strides: "
        "{} is permuted",
        end, module.name, site_name(context_, wiring, site), permuted);
    finding.labels = {{site_span(context_, wiring, site), "captured here"}};
    finding.witness = {.kind = WitnessKind::Replay,
                       .tasks = {site_reference(context_, wiring, site)}};
    finding.help.text = fmt::format("make the {} contiguous inside the module", end);
    out_.keep(std::move(finding));
  }

  const Context& context_;
  Diagnostics& out_;
  std::set<const Module*> judged_;
};

}  // namespace

void strides_lost(const Context& context, Diagnostics& out) {
  const PlanView& view = context.plan_view();
  if (!view.declared() || view.kind() != PlanKind::Te) return;
  Judge judge(context, out);
  for (std::size_t r = 0; r < view.captured().size(); ++r) {
    const auto rank = static_cast<std::int32_t>(r);
    for (const Work& work : view.captured()[r]) {
      if (work.kind != Kind::Forward) continue;
      for_each_layer(view.table(), rank, work, [&](std::int32_t layer) {
        const Module* module = view.table().facts(rank, work.chunk, layer).module;
        if (module == nullptr) return;
        judge.look_at(*module, {.rank = rank, .entry = work.entry, .kind = work.kind});
      });
    }
  }
}

}  // namespace capo::rules
