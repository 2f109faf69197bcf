// Two gradient buckets that become ready in one weight-gradient graph may start in any order.
//
//   [1, -1, -1.5]     the modules whose weight gradients one graph holds are a Python set, sorted
//                     by addresses; after a replay their hooks run in that order, which another
//                     rank need not share, and the collectives of the buckets cross
//
// A set of one has one order, and a module runs its own hooks in the order in which they were
// added: so this concerns a transformer-layer only, the one kind that is several modules. Calling a
// module twice does not put it into the set twice. (A grouped-mlp is several operations: see G08.)
// Tested by set_order_test.cpp and tests/corpus/rules/G09/.

#include "core/diag/diagnostics.h"
#include "core/rules/captured_by_te.h"
#include "core/rules/checks.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

namespace {

bool at_fault(const Context& /*context*/, const Module& module) {
  return module.flags.delay_wgrad && module.flags.wgrad_hooks && module.grad_buckets > 1 &&
         module.kind == ModuleKind::TransformerLayer;
}

ModuleFinding describe(const Context& context, const ModuleUse& use) {
  return {
      .message = fmt::format(
          "module `{}` makes {} gradient buckets ready within {}, in an order that "
          "TransformerEngine takes from a set: their reductions may start in another order on "
          "another rank",
          use.module->name, use.module->grad_buckets, words::placed(context, *use.order, use.at)),
      .label = "starts several reductions, in any order",
      .help = "put the parameters of the layer into one bucket, or reduce when the step is over",
      .replayed = use.entries({Kind::BackwardWeight}, 8)};
}

constexpr ModuleRule kRule{.id = "G09",
                           .family = Family::Gradients,
                           .shows_at = ShowsAt::WeightGradient,
                           .at_fault = at_fault,
                           .describe = describe};

}  // namespace

void set_order(const Context& context, Diagnostics& out) {
  report_modules(context, kRule, out);
}

}  // namespace capo::rules
