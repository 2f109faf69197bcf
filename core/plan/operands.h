// What a module keeps for its weight gradient: the static buffers of its graph themselves, or
// copies of its own.
//
// Read off TransformerEngine d0067d0da, module by module; [gpu] where it was seen on an H200 with
// real graphs (linear, grouped-linear, layernorm-linear and copying layers). A buffer is aliased
// where the module is the first (input) or the last (gradient) of its graph, or stands behind views
// only; a graph of several modules is declared by the kind of its ends. Tested by
// operands_test.cpp.

#pragma once

#include "core/model/model.h"

#include <optional>

namespace capo {

/// Nothing where the module does not say its kind.
[[nodiscard]] std::optional<Aliases> aliases_of(const Module& module);

}  // namespace capo
