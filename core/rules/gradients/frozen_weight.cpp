// A frozen weight queues nothing, and the delayed weight gradient takes something all the same.
//
//   [1, -1, -1.5]     W finds the queue empty: "Pop empty queue", outside of graphs as well
//
// A layernorm-mlp has two weights and W takes two entries, that of fc2 first; with one of them
// frozen there is one entry, which is taken for the other weight's. grouped-linear and the
// operations look before they take, so they are not at fault. Tested by frozen_weight_test.cpp and
// tests/corpus/rules/G04/.

#include "core/diag/diagnostics.h"
#include "core/frameworks/te/contract.h"
#include "core/rules/captured_by_te.h"
#include "core/rules/checks.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

namespace {

bool at_fault(const Context& /*context*/, const Module& module) {
  return module.flags.delay_wgrad && module.flags.frozen_weight &&
         (!module.kind || gradients::te_raises_on_empty_queue(*module.kind));
}

ModuleFinding describe(const Context& context, const ModuleUse& use) {
  const bool two = use.module->kind == ModuleKind::LayerNormMlp;
  return {
      .message = fmt::format("module `{}` delays the gradient of a frozen weight: {} {}",
                             use.module->name, words::placed(context, *use.order, use.at),
                             two ? "takes two entries from its queue where one is, and that for "
                                   "the wrong weight"
                                 : "takes an entry from a queue that is empty"),
      .label = two ? "mixes up fc1 and fc2" : "nothing is queued for it",
      .help = "do not delay the weight gradient of a module with a frozen weight"};
}

constexpr ModuleRule kRule{.id = "G04",
                           .family = Family::Gradients,
                           .shows_at = ShowsAt::WeightGradient,
                           .at_fault = at_fault,
                           .describe = describe};

}  // namespace

void frozen_weight(const Context& context, Diagnostics& out) {
  report_modules(context, kRule, out);
}

}  // namespace capo::rules
