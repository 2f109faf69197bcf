// The buffers of one layer and microbatch, and who touches them.
//
//   static input    written by F, read by F, by W where that aliases it, and by B unless a W of its
//                   own is known to be all that needs it
//   grad output     written by B, read by B, and by W where it aliases it
//   output          written by F, read by the next stage (or its send), and there until B
//   grad input      written by B, read by the layer below, or by the stage before (or its send)
//   activations     what F keeps for B; for W as well where W reads a copy of the input
//   operands        what B keeps for W where W reads a copy of the gradient
//   scratch         what such a W takes while it runs, to make the copy readable again

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace capo {

enum class BufferKind : std::uint8_t {
  StaticInput,
  GradOutput,
  Output,
  GradInput,
  Activations,
  Operands,
  Scratch,
};
inline constexpr std::size_t kBufferKinds = 7;

/// "static input", "grad output", "output", "grad input", "activations", "operands",
/// "scratch".
[[nodiscard]] std::string_view name_of(BufferKind kind);

}  // namespace capo
