// A module queues an entry for each of its calls, and a weight gradient takes one of them.
//
//   [1, -1, -1.5]     called twice: B queues two entries, W takes the older one; the other stays,
//                     so that the next W takes what an earlier microbatch, or the warm-up, left
//
// There is one queue for each module, first in, first out, for all microbatches and graphs. Nothing
// looks whether it is empty. Tested by called_twice_test.cpp and tests/corpus/rules/C04/.

#include "core/diag/diagnostics.h"
#include "core/rules/captured_by_te.h"
#include "core/rules/checks.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

namespace {

bool at_fault(const Context& /*context*/, const Module& module) {
  return queues_weight_gradient(module) && module.calls > 1;
}

ModuleFinding describe(const Context& context, const ModuleUse& use) {
  return {.message = fmt::format(
              "module `{}` is called {} times in one graph and queues as many weight gradients, of "
              "which {} takes one: what is left is taken for a later microbatch's",
              use.module->name, use.module->calls, words::placed(context, *use.order, use.at)),
          .label = "takes one entry, and leaves the others",
          .help = "give every call a module of its own, or do not delay the weight gradient",
          .replayed = use.entries({Kind::BackwardWeight}, 2),
          .second_label = "takes what was left"};
}

constexpr ModuleRule kRule{.id = "C04",
                           .family = Family::Capture,
                           .shows_at = ShowsAt::WeightGradient,
                           .at_fault = at_fault,
                           .describe = describe};

}  // namespace

void called_twice(const Context& context, Diagnostics& out) {
  report_modules(context, kRule, out);
}

}  // namespace capo::rules
