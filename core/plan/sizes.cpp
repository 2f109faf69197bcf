#include "core/plan/sizes.h"

#include <limits>

namespace capo {

namespace {

using Bytes = std::optional<std::int64_t>;

std::int64_t element(DataType type) {
  return type == DataType::Fp32 ? 4 : 2;
}

// nullopt if a factor is unknown; the largest number if the product leaves 64 bits.
Bytes product(const std::optional<std::int64_t>& a, const std::optional<std::int64_t>& b,
              std::int64_t c) {
  if (!a || !b) return std::nullopt;
  std::int64_t ab = 0;
  std::int64_t abc = 0;
  if (__builtin_mul_overflow(*a, *b, &ab) || __builtin_mul_overflow(ab, c, &abc)) {
    return std::numeric_limits<std::int64_t>::max();
  }
  return abc;
}

Bytes or_else(const Bytes& declared, const Bytes& derived) {
  return declared ? declared : derived;
}

const std::optional<std::int64_t>& columns_out(const Module& module) {
  return is_one_product(*module.kind) ? module.shape.ffn : module.shape.hidden;
}

}  // namespace

std::optional<std::int64_t> input_bytes(const Module& module) {
  if (module.bytes.input || !module.dtype) return module.bytes.input;
  return product(module.shape.tokens, module.shape.hidden, element(*module.dtype));
}

std::optional<std::int64_t> output_bytes(const Module& module) {
  if (module.bytes.output || !module.dtype || !module.kind) return module.bytes.output;
  return product(module.shape.tokens, columns_out(module), element(*module.dtype));
}

std::optional<std::array<std::int64_t, kBufferKinds>> buffer_bytes(const Module& module,
                                                                   const Aliases& aliases,
                                                                   bool delayed) {
  const ModuleShape& shape = module.shape;
  const Bytes input = input_bytes(module);
  const Bytes output = output_bytes(module);
  Bytes kept;
  Bytes operands;
  if (module.dtype && module.kind) {
    const bool quantized = module.dtype == DataType::Fp8 && !module.flags.high_precision_backward;
    const std::int64_t width = quantized ? 1 : element(*module.dtype);
    if (is_one_product(*module.kind)) kept = product(shape.tokens, shape.hidden, width);
    operands = product(shape.tokens, columns_out(module), width);
  }
  if (aliases.input) kept = 0;
  if (aliases.grad_output || !delayed) operands = 0;
  kept = or_else(module.bytes.activations, kept);
  if (delayed) operands = or_else(module.bytes.operands, operands);
  if (!input || !output || !kept || !operands) return std::nullopt;
  const std::int64_t scratch = *operands > 0 ? *output : 0;
  return std::array{*input, *output, *output, *input, *kept, *operands, scratch};
}

}  // namespace capo
