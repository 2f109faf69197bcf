#include "core/plan/sizes.h"

#include "core/model/inventory.h"
#include "core/plan/operands.h"

namespace capo {

namespace {

using Bytes = std::optional<std::int64_t>;

// nullopt if a factor is unknown; the largest number if the product leaves 64 bits.
Bytes product(const Bytes& a, const Bytes& b, std::int64_t c) {
  if (!a || !b) return std::nullopt;
  return saturated_product(*a, *b, c);
}

Bytes or_else(const Bytes& declared, const Bytes& derived) {
  return declared ? declared : derived;
}

const Bytes& columns_out(const Module& module) {
  return is_one_product(*module.kind) ? module.shape.ffn : module.shape.hidden;
}

// The types of a module's tensors, and of its copies of operands.
LayerTypes types_of(const Module& module) {
  const bool wide = module.flags.high_precision_backward;
  return {*module.dtype, wide ? Recipe::None : recipe_of(module)};
}

// nullopt if a size is unknown.
Bytes copied(const Module& module, const Bytes& rows, const Bytes& columns) {
  if (!rows || !columns) return std::nullopt;
  return operand_bytes(types_of(module), *rows, *columns);
}

// The first product reads the input itself, or a copy.
Bytes kept_of_heads(const Module& module, const Aliases& aliases) {
  const ModuleShape& shape = module.shape;
  if (!shape.tokens || !shape.heads || !shape.kv_heads || !shape.head_dim) return std::nullopt;
  const std::int64_t kept = kept_by_attention(
      {*shape.tokens, *shape.heads, *shape.kv_heads, *shape.head_dim}, types_of(module));
  if (aliases.input) return kept;
  const Bytes copy = copied(module, shape.tokens, shape.hidden);
  return copy ? Bytes(saturated_sum(*copy, kept)) : std::nullopt;
}

// Bytes that forward keeps, of a module with a kind and a type.
Bytes kept_bytes(const Module& module, const Aliases& aliases) {
  const ModuleShape& shape = module.shape;
  if (is_one_product(*module.kind)) {
    if (aliases.input && !makes_for_weight(module)) return 0;
    return copied(module, shape.tokens, shape.hidden);
  }
  if (is_attention(*module.kind)) return kept_of_heads(module, aliases);
  if (!is_mlp(*module.kind) || !shape.tokens || !shape.hidden || !shape.ffn) return std::nullopt;
  return kept_by_mlp({*shape.tokens, *shape.hidden, *shape.ffn}, types_of(module));
}

// Bytes that B leaves for W if W reads a copy of the gradient, of a module with a kind and a type.
Bytes copied_gradient(const Module& module) {
  return copied(module, module.shape.tokens, columns_out(module));
}

// Bytes that W sorts the incoming gradient into by group, a row for each choice of a router;
// nullopt without one, or if it is not said how many choices a token has.
Bytes sorted_gradient(const Module& module) {
  if (!module.dtype || !has_router(module)) return std::nullopt;
  return product(module.shape.tokens, module.shape.top_k,
                 module.shape.hidden.value_or(0) * element_bytes(*module.dtype));
}

WeightCopies copies_of(const Module& module) {
  return module.flags.high_precision_backward ? WeightCopies::Forward : WeightCopies::Both;
}

// Those of the product that makes queries, keys and values, and of the one that reads the heads.
Bytes quantized_weights_of_heads(const Module& module) {
  const ModuleShape& shape = module.shape;
  if (!shape.hidden || !shape.heads || !shape.kv_heads || !shape.head_dim) return std::nullopt;
  const auto of = [&](std::int64_t out, std::int64_t in) {
    return weight_copy_bytes(recipe_of(module), copies_of(module), out, in);
  };
  const std::int64_t heads = saturated_sum(*shape.heads, saturated_product(2, *shape.kv_heads));
  return saturated_sum(of(saturated_product(heads, *shape.head_dim), *shape.hidden),
                       of(*shape.hidden, saturated_product(*shape.heads, *shape.head_dim)));
}

// Bytes of the quantized copies of a module's weights by its shape; nullopt if they do not follow.
Bytes quantized_weight(const Module& module) {
  const ModuleShape& shape = module.shape;
  if (module.kind && is_attention(*module.kind)) return quantized_weights_of_heads(module);
  if (!module.kind || !shape.hidden || !shape.ffn || (is_grouped(*module.kind) && !shape.groups))
    return std::nullopt;
  const auto of = [&](std::int64_t out, std::int64_t in) {
    return weight_copy_bytes(recipe_of(module), copies_of(module), out, in);
  };
  const std::int64_t groups = is_grouped(*module.kind) ? *shape.groups : 1;
  if (is_one_product(*module.kind)) return saturated_product(groups, of(*shape.ffn, *shape.hidden));
  if (!is_mlp(*module.kind)) return std::nullopt;
  const std::int64_t both = saturated_sum(of(saturated_product(2, *shape.ffn), *shape.hidden),
                                          of(*shape.hidden, *shape.ffn));
  return saturated_product(groups, both);
}

// 0 if they are neither declared nor follow from a configuration or a shape.
std::int64_t weight_copies(const Module& module) {
  const Bytes derived = or_else(module.derived.quantized_weight, quantized_weight(module));
  return or_else(module.bytes.quantized_weight, derived).value_or(0);
}

struct Kept {
  Bytes activations;
  Bytes operands;
  bool widened = false;  ///< W makes operands readable again
};

Kept kept_by(const Module& module, const Aliases& aliases, bool delayed) {
  Kept kept;
  const bool known = module.dtype && module.kind;
  if (known) kept.activations = kept_bytes(module, aliases);
  if (aliases.input && !makes_for_weight(module) && !kept.activations) kept.activations = 0;
  kept.activations =
      or_else(module.bytes.activations, or_else(module.derived.activations, kept.activations));
  if (!delayed) {
    kept.operands = 0;
    return kept;
  }
  if (aliases.grad_output) {
    kept.operands = module.derived.operands.value_or(0);
  } else if (known) {
    kept.operands = copied_gradient(module);
  }
  kept.operands = or_else(module.bytes.operands, kept.operands);
  kept.widened = !aliases.grad_output || module.bytes.operands;
  return kept;
}

// The first of the sizes of an attention's heads.
std::string undeclared_of_heads(const ModuleShape& shape) {
  if (!shape.heads) return "shape.heads";
  return shape.kv_heads ? "shape.head_dim" : "shape.kv_heads";
}

// The first of a module's sizes that its output and input, or what it keeps, would follow from.
std::string undeclared_member(const Module& module, bool end) {
  if (!module.lacks.empty()) return "configuration." + module.lacks;
  if (!module.kind) return "kind";
  if (!module.dtype) return "dtype";
  if (!module.shape.tokens) return "shape.tokens";
  if (!module.shape.hidden) return "shape.hidden";
  if (!end && is_made_of_modules(*module.kind)) return "bytes.activations";
  if (is_attention(*module.kind)) return undeclared_of_heads(module.shape);
  return "shape.ffn";
}

}  // namespace

std::optional<std::int64_t> input_bytes(const Module& module) {
  if (module.bytes.input || module.derived.input) {
    return or_else(module.bytes.input, module.derived.input);
  }
  if (!module.dtype) return std::nullopt;
  return product(module.shape.tokens, module.shape.hidden, element_bytes(*module.dtype));
}

std::optional<std::int64_t> output_bytes(const Module& module) {
  if (module.bytes.output || module.derived.output) {
    return or_else(module.bytes.output, module.derived.output);
  }
  if (!module.dtype || !module.kind) return std::nullopt;
  return product(module.shape.tokens, columns_out(module), element_bytes(*module.dtype));
}

std::int64_t weight_bytes(const Module& module) {
  const std::int64_t weight = or_else(module.bytes.weight, module.derived.weight).value_or(0);
  if (!module.weight_cache || !quantizes(recipe_of(module))) return weight;
  return saturated_sum(weight, weight_copies(module));
}

std::optional<std::array<std::int64_t, kBufferKinds>> buffer_bytes(const Module& module,
                                                                   const Aliases& aliases,
                                                                   bool delayed) {
  const Bytes input = input_bytes(module);
  const Bytes output = output_bytes(module);
  const Kept kept = kept_by(module, aliases, delayed);
  if (!input || !output || !kept.activations || !kept.operands) return std::nullopt;
  const std::int64_t copy = kept.widened && *kept.operands > 0 ? *output : 0;
  const std::int64_t scratch = delayed ? sorted_gradient(module).value_or(copy) : copy;
  const std::int64_t weight = keeps_quantized_weight(module) ? weight_copies(module) : 0;
  return std::array{*input,         *output, *output, *input, *kept.activations,
                    *kept.operands, scratch, weight};
}

std::string undeclared_size(const Module& module, const Aliases& aliases, bool delayed) {
  if (!input_bytes(module) || !output_bytes(module)) return undeclared_member(module, true);
  const Kept kept = kept_by(module, aliases, delayed);
  return kept.activations && kept.operands ? std::string() : undeclared_member(module, false);
}

}  // namespace capo
