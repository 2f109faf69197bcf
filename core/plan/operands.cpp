#include "core/plan/operands.h"

namespace capo {

namespace {

// A quantized copy is made of both operands, unless backward is told to do without.
bool copies(const Module& module) {
  return module.dtype == DataType::Fp8 && !module.flags.high_precision_backward;
}

bool is_grouped_linear(ModuleKind kind) {
  return kind == ModuleKind::GroupedLinear || kind == ModuleKind::GroupedLinearOp;
}

bool keeps_input(const Module& module) {
  switch (*module.kind) {
    case ModuleKind::Linear:
    case ModuleKind::GroupedLinear:
    case ModuleKind::GroupedLinearOp:
    case ModuleKind::BasicLinearOp:
      break;
    default:
      return false;  // behind a norm, or a copy from the start
  }
  // The wgrad product reads the sizes of its groups again, quantized or not.
  if (is_grouped_linear(*module.kind) && module.splits == Splits::Input) return true;
  return !copies(module) && !module.flags.gathered_input && module.flags.contiguous_input;
}

bool keeps_grad_output(const Module& module) {
  if (module.kind == ModuleKind::GroupedMlp) return false;  // fused kernels are quantized only
  return !copies(module) && !module.flags.gathered_grad_output;
}

}  // namespace

std::optional<Aliases> aliases_of(const Module& module) {
  if (!module.kind) return std::nullopt;
  return Aliases{.input = keeps_input(module), .grad_output = keeps_grad_output(module)};
}

}  // namespace capo
