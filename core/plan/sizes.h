// Each buffer of a layer takes the declared bytes, or else those that follow from the model's
// configuration, or else the bytes that follow from the shape.
//
//   linear, bf16, 8 tokens, hidden 16, ffn 32   ->   input 256, output 512
//
// Tensors between modules have the module's type; a quantized copy takes what its recipe says
// (core/model/recipe.h), its scales included. An MLP and an attention keep what core/model/inventory.h says. The memory
// that a whole transformer layer, or its half with experts, keeps from forward to backward follows
// from a configuration alone, or is declared (`bytes.activations`). Alignment is the table's
// concern (buffers.h). Tested by sizes_test.cpp.

#pragma once

#include "core/model/model.h"
#include "core/plan/buffer_kind.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace capo {

/// Bytes of the tensor that a module reads, and of the one that it makes; nullopt if unknown.
[[nodiscard]] std::optional<std::int64_t> input_bytes(const Module& module);
[[nodiscard]] std::optional<std::int64_t> output_bytes(const Module& module);

/// Bytes of a module's weights, and of their quantized copies if these are kept (weight_cache); 0
/// each if they are neither declared nor follow from a configuration or, of copies, a shape.
[[nodiscard]] std::int64_t weight_bytes(const Module& module);

/// Bytes by BufferKind; `delayed` if its weight gradient is an action of its own. nullopt if a size
/// is neither declared nor derivable; the largest number if more follows than 64 bits hold.
[[nodiscard]] std::optional<std::array<std::int64_t, kBufferKinds>> buffer_bytes(
    const Module& module, const Aliases& aliases, bool delayed = true);

/// The member of model.json for want of which buffer_bytes() knows no sizes: "shape.tokens",
/// "configuration.expert_ffn". Empty if it knows them.
[[nodiscard]] std::string undeclared_size(const Module& module, const Aliases& aliases,
                                          bool delayed = true);

}  // namespace capo
