// The gradient of a bias that comes out of the delayed product is lost under CUDA graphs.
//
//   [1, -1, -1.5]     the product of W makes both gradients; the weight's goes to main_grad, the
//                     bias's to `.grad`, by an assignment in Python that no replay runs
//
// That product makes it in linear, layernorm-linear and layernorm-mlp (so also in a
// transformer-layer) and on the split path of the module grouped-linear, which is the one without
// splits on the device; everywhere else, and from fp8 operands, B makes it. (TransformerEngine's
// capture of fp8 with bias and delay fails in warm-up.) A type that is not declared is taken for
// one that is not fp8. Tested by bias_gradient_lost_test.cpp and tests/corpus/rules/G02/.

#include "core/base/assert.h"
#include "core/diag/diagnostics.h"
#include "core/rules/captured_by_te.h"
#include "core/rules/checks.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

namespace {

// Whether the product that makes the weight gradient makes the bias's too.
bool comes_with_the_weight(const Module& module) {
  if (!module.kind || module.dtype == DataType::Fp8) return false;
  switch (*module.kind) {
    case ModuleKind::Linear:
    case ModuleKind::LayerNormLinear:
    case ModuleKind::LayerNormMlp:
    case ModuleKind::TransformerLayer:
      return true;
    case ModuleKind::GroupedLinear:
      return !module.splits || module.splits == Splits::Host;
    case ModuleKind::GroupedMlp:
    case ModuleKind::GroupedLinearOp:
    case ModuleKind::BasicLinearOp:
      return false;
  }
  CAPO_UNREACHABLE();
}

bool at_fault(const Context& /*context*/, const Module& module) {
  return queues_weight_gradient(module) && module.flags.bias && comes_with_the_weight(module);
}

ModuleFinding describe(const Context& context, const ModuleUse& use) {
  return {
      .message = fmt::format(
          "module `{}` loses the gradient of its bias, which the delayed product makes: `.grad` "
          "is assigned when {} is captured, and by no replay",
          use.module->name, words::placed(context, *use.order, use.at)),
      .label = "its replays compute a bias gradient that nobody reads",
      .help = "add the bias outside of the module, or do not delay its weight gradient",
      .replayed = use.entries({Kind::BackwardWeight}, 8)};
}

constexpr ModuleRule kRule{.id = "G02",
                           .family = Family::Gradients,
                           .shows_at = ShowsAt::WeightGradient,
                           .at_fault = at_fault,
                           .describe = describe};

}  // namespace

void bias_gradient_lost(const Context& context, Diagnostics& out) {
  report_modules(context, kRule, out);
}

}  // namespace capo::rules
