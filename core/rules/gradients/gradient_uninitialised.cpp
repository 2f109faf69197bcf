// The module grouped-linear returns memory that nobody has written.
//
//   [1, -1, -1.5]     B allocates the weight gradient, queues it for W and hands the same tensor to
//                     autograd, which adds what happens to lie there to `.grad`; W fills it later
//
// Only without fuse_wgrad_accumulation, and only that module: the operation returns None. Elsewhere
// such a gradient is lost and not made up (G01). Tested by gradient_uninitialised_test.cpp and
// tests/corpus/rules/G03/.

#include "core/diag/diagnostics.h"
#include "core/rules/captured_by_te.h"
#include "core/rules/checks.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

namespace {

bool at_fault(const Context& /*context*/, const Module& module) {
  return queues_weight_gradient(module) && !module.flags.fuse_wgrad_accumulation &&
         module.kind == ModuleKind::GroupedLinear;
}

ModuleFinding describe(const Context& context, const ModuleUse& use) {
  const std::vector<std::size_t> weights = use.entries({Kind::BackwardWeight}, 1);
  std::vector<std::size_t> replayed{use.at};
  replayed.insert(replayed.end(), weights.begin(), weights.end());
  return {.message = fmt::format(
              "module `{}` returns memory that nobody has written: {} hands autograd the buffer "
              "that its delayed weight gradient fills later, and autograd adds it to `.grad`",
              use.module->name, words::placed(context, *use.order, use.at)),
          .label = "returns an uninitialised buffer",
          .help = "set fuse_wgrad_accumulation, so that the weight gradient adds into main_grad",
          .replayed = std::move(replayed),
          .second_label = "this fills it"};
}

constexpr ModuleRule kRule{.id = "G03",
                           .family = Family::Gradients,
                           .shows_at = ShowsAt::Backward,
                           .at_fault = at_fault,
                           .describe = describe};

}  // namespace

void gradient_uninitialised(const Context& context, Diagnostics& out) {
  report_modules(context, kRule, out);
}

}  // namespace capo::rules
