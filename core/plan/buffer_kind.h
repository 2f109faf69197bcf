// One layer has seven buffers for each microbatch, one that quantizes its weight eight, and a chunk
// two more, into which its receives are posted; the list says which actions touch them.
//
//   static input    written by F, read by F, by W if it aliases the input, and by B unless W is
//                   known to be the only reader
//   grad output     written by B, read by B, and by W if it aliases the gradient
//   output          written by F, read by the next stage (or its send), and there until B
//   grad input      written by B, read by the layer below, or by the stage before (or its send)
//   activations     kept by F for B, and for W as well if W reads a copy of the input
//   operands        kept by B for W if W reads a copy of the gradient
//   scratch         taken by such a W while it runs, to make the copy readable again; by W behind a
//                   router, to sort the gradient by group
//   quantized weight     made by F for itself and B, where no cache of weights keeps it for all
//                   microbatches
//   received activation, received gradient     written by a receive from its start on, and read by
//                   the F or B of the chunk, which copies it into its static input or grad output
//
// Sizes are in sizes.h, numbers in buffers.h. Tested by buffers_test.cpp.

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
  QuantizedWeight,
  ReceivedActivation,
  ReceivedGradient,
};
inline constexpr std::size_t kBufferKinds = 8;  ///< those of a layer
/// Those of a layer in a step that quantizes no weight in its microbatches: all but the last.
inline constexpr std::size_t kUnquantizedKinds = 7;

/// "static input", "grad output", "output", "grad input", "activations", "operands", "scratch",
/// "quantized weight", "received activation", "received gradient".
[[nodiscard]] std::string_view name_of(BufferKind kind);

}  // namespace capo
