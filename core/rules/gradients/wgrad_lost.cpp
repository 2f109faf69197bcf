// A weight gradient that is delayed and not fused ends nowhere under CUDA graphs.
//
//   [1, -1, -1.5]     W computes the gradient, and Python then says `.grad = ...`: at capture. A
//                     replay runs kernels only, so autograd's `.grad` never sees what it computed.
//
// Concerns neither a frozen weight (G04) nor grouped-linear, which hands autograd a buffer (G03),
// nor the shared weight of a step that PyTorch itself takes apart (G06). Tested by
// wgrad_lost_test.cpp and tests/corpus/rules/G01/.

#include "core/diag/diagnostics.h"
#include "core/rules/captured_by_te.h"
#include "core/rules/checks.h"
#include "core/rules/gradients/split_by_torch.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

namespace {

bool at_fault(const Context& context, const Module& module) {
  return queues_weight_gradient(module) && !module.flags.fuse_wgrad_accumulation &&
         module.kind != ModuleKind::GroupedLinear && !split_by_torch(context, module);
}

ModuleFinding describe(const Context& context, const ModuleUse& use) {
  return {.message = fmt::format(
              "module `{}` loses its weight gradient, which is delayed and not fused: `.grad` is "
              "assigned when {} is captured, and by no replay",
              use.module->name, words::placed(context, *use.order, use.at)),
          .label = "its replays compute a gradient that nobody reads",
          .help = "set fuse_wgrad_accumulation, so that the weight gradient adds into main_grad",
          .replayed = use.entries({Kind::BackwardWeight}, 8)};
}

constexpr ModuleRule kRule{.id = "G01",
                           .family = Family::Gradients,
                           .shows_at = ShowsAt::WeightGradient,
                           .at_fault = at_fault,
                           .describe = describe};

}  // namespace

void wgrad_lost(const Context& context, Diagnostics& out) {
  report_modules(context, kRule, out);
}

}  // namespace capo::rules
