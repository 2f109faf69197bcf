// One weight for all groups needs a main_grad that lies in memory as (groups, out, in).
//
//   shape (4, 64, 32), strides (2048, 1, 64)    the right shape, transposed: a grouped product
//                                               writes a copy, and main_grad never changes
//
// What fits is decided in core/frameworks/te/main_grad.h. The sizes are the module's groups, ffn
// and hidden; where they are not declared, and of a grouped-mlp, which has two weights, those of a
// main_grad with three dimensions. Tested by main_grad_layout_test.cpp and tests/corpus/rules/G07/.

#include "core/base/assert.h"
#include "core/diag/diagnostics.h"
#include "core/frameworks/te/main_grad.h"
#include "core/rules/captured_by_te.h"
#include "core/rules/checks.h"
#include "core/rules/words.h"

#include <fmt/format.h>

namespace capo::rules {

namespace {

// The weight that main_grad is of; nothing where its sizes are not known.
std::optional<gradients::GroupedWeight> weight_of(const Module& module) {
  const ModuleShape& shape = module.shape;
  if (module.kind != ModuleKind::GroupedMlp && shape.groups && shape.ffn && shape.hidden)
    return gradients::GroupedWeight{*shape.groups, *shape.ffn, *shape.hidden};
  const auto& sizes = module.main_grad->shape;
  if (sizes.size() == 3) return gradients::GroupedWeight{sizes[0], sizes[1], sizes[2]};
  return std::nullopt;
}

std::optional<std::string> refusal(const Module& module) {
  const auto weight = weight_of(module);
  return weight ? gradients::main_grad_refusal(*module.main_grad, *weight) : std::nullopt;
}

std::string_view consequence(const Module& module) {
  if (!module.kind) return "";
  switch (gradients::te_with_main_grad(*module.kind, *module.main_grad, *weight_of(module))) {
    case gradients::TeMainGrad::Writes:
      return "";
    case gradients::TeMainGrad::RefusesNamingIt:
      return "; TransformerEngine refuses it in backward";
    case gradients::TeMainGrad::FailsInView:
      return "; backward fails in view(-1)";
    case gradients::TeMainGrad::WritesCopySilently:
      return "; the gradient goes to a copy without a word, and main_grad never changes";
  }
  CAPO_UNREACHABLE();
}

bool at_fault(const Context& /*context*/, const Module& module) {
  return module.flags.single_weight && module.flags.fuse_wgrad_accumulation &&
         !module.flags.frozen_weight && module.main_grad && refusal(module);
}

ModuleFinding describe(const Context& context, const ModuleUse& use) {
  return {.message = fmt::format("module `{}` cannot accumulate the gradient of its one weight at "
                                 "{}: {}{}",
                                 use.module->name, words::placed(context, *use.order, use.at),
                                 *refusal(*use.module), consequence(*use.module)),
          .label = "writes to this main_grad",
          .help = "give the parameter a contiguous main_grad of shape (groups, out, in)"};
}

constexpr ModuleRule kRule{.id = "G07",
                           .family = Family::Gradients,
                           .shows_at = ShowsAt::Backward,
                           .at_fault = at_fault,
                           .describe = describe};

}  // namespace

void main_grad_layout(const Context& context, Diagnostics& out) {
  report_modules(context, kRule, out);
}

}  // namespace capo::rules
