// The gradient of a distributed weight is scattered when B is over, and a delayed one is not there
// yet.
//
//   [1, -1, -1.5]     grouped-linear scatters at B what W has not made; linear and layernorm-linear
//                     never scatter it; the operations refuse to delay such a weight
//
// Tested by sharded_weight_test.cpp and tests/corpus/rules/G11/.

#include "core/diag/diagnostics.h"
#include "core/frameworks/te/contract.h"
#include "core/rules/captured_by_te.h"
#include "core/rules/checks.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

namespace {

std::string_view consequence(const Module& module) {
  if (!module.kind) return "its gradient is not scattered when it is done";
  if (gradients::is_operation(*module.kind)) return "TransformerEngine refuses to";
  if (module.kind == ModuleKind::GroupedLinear)
    return "its gradient is scattered by the backward, before it exists";
  return "its gradient is never scattered";
}

bool at_fault(const Context& /*context*/, const Module& module) {
  return queues_weight_gradient(module) && module.flags.sharded_weight;
}

ModuleFinding describe(const Context& context, const ModuleUse& use) {
  return {.message = fmt::format(
              "module `{}` delays the gradient of a distributed weight to {}: {}", use.module->name,
              words::placed(context, *use.order, use.at), consequence(*use.module)),
          .label = "nothing scatters what this makes",
          .help = "do not delay the weight gradient of a distributed weight"};
}

constexpr ModuleRule kRule{.id = "G11",
                           .family = Family::Gradients,
                           .shows_at = ShowsAt::WeightGradient,
                           .at_fault = at_fault,
                           .describe = describe};

}  // namespace

void sharded_weight(const Context& context, Diagnostics& out) {
  report_modules(context, kRule, out);
}

}  // namespace capo::rules
