// How many bytes each buffer of a layer takes: as declared, else what follows from the shape.
//
// Tensors between modules have the module's type, bf16 where it is fp8; a quantized copy takes one
// byte an element. What an MLP or a whole transformer layer keeps from forward to backward does not
// follow from its shape, so that has to be declared (`bytes.activations`). Tested by
// sizes_test.cpp.

#pragma once

#include "core/model/model.h"
#include "core/plan/buffer_kind.h"

#include <array>
#include <cstdint>
#include <optional>

namespace capo {

/// Of the tensor that a module reads, and of the one that it makes.
[[nodiscard]] std::optional<std::int64_t> input_bytes(const Module& module);
[[nodiscard]] std::optional<std::int64_t> output_bytes(const Module& module);

/// By BufferKind; `delayed`: its weight gradient is an action of its own. Nothing where something
/// is neither declared nor follows; the largest number where more follows than 64 bits hold.
[[nodiscard]] std::optional<std::array<std::int64_t, kBufferKinds>> buffer_bytes(
    const Module& module, const Aliases& aliases, bool delayed = true);

}  // namespace capo
