// A module keeps operands for its weight gradient: the static buffers of its graph themselves, or
// copies of its own.
//
//   linear, bf16              W reads the static input and the static gradient
//   linear, quantized         W reads quantized copies
//   layernorm-linear, bf16    W reads the norm's output and the static gradient
//
// The facts are TE's, read module by module; linear, grouped-linear, layernorm-linear and copying
// layers were also seen on an H200 with real graphs. A buffer is aliased if the module is the first
// (input) or the last (gradient) of its graph, or only views stand between; a graph of several
// modules is declared by the kinds at its ends. Sizes of copies are in sizes.h. Tested by
// operands_test.cpp.

#pragma once

#include "core/model/model.h"

#include <optional>

namespace capo {

/// nullopt if the module does not declare its kind.
[[nodiscard]] std::optional<Aliases> aliases_of(const Module& module);

/// Whether a weight gradient reads something that forward made even where it reads the input
/// itself, as that of an attention's second product does, and that of a grouped product of
/// quantized operands whose sizes lie in its input.
[[nodiscard]] bool makes_for_weight(const Module& module);

/// Whether each microbatch makes quantized copies of the module's weights for itself, of which
/// those that B reads wait for it: no `weight_cache` keeps them for all.
[[nodiscard]] bool keeps_quantized_weight(const Module& module);

}  // namespace capo
