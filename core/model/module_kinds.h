// What kinds of module have in common: groups, a norm in front, two weights.

#pragma once

#include "core/model/model.h"

namespace capo {

/// Its rows are in groups, each with a weight of its own.
[[nodiscard]] constexpr bool is_grouped(ModuleKind kind) {
  return kind == ModuleKind::GroupedLinear || kind == ModuleKind::GroupedLinearOp ||
         kind == ModuleKind::GroupedMlp;
}

/// A norm stands in front of its product.
[[nodiscard]] constexpr bool has_norm(ModuleKind kind) {
  return kind == ModuleKind::LayerNormLinear || kind == ModuleKind::LayerNormMlp;
}

/// Two products with an activation between them, so that there are two weights.
[[nodiscard]] constexpr bool is_mlp(ModuleKind kind) {
  return kind == ModuleKind::LayerNormMlp || kind == ModuleKind::GroupedMlp;
}

}  // namespace capo
