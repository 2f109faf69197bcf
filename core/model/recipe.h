// A recipe says how a module quantizes the operands of its products. It is one row of facts: the
// width of an element, the blocks that share a scale, the copies that are made of an operand, and
// whether some of its state lives outside the graphs that use it.
//
//   mxfp8, 256 rows of 512 columns
//     row-wise copy       131072 bytes and 4096 scales, each of 32 elements of a row
//     column-wise copy    131072 bytes and 4096 scales, each of 32 elements of a column
//
// Forward multiplies row-wise copies of X and W; B a row-wise one of dY with a column-wise one of
// the weight; W column-wise ones of dY and X. So W reads one copy of each. The facts are
// upstream's as of d0067d0da; recipe.cpp names the sources. How it treats a kind of module
// under a recipe, on which device, is core/frameworks/te/quantization.h's concern, and to the bit
// the numbers are those of run/. Tested by recipe_test.cpp.

#pragma once

#include <cstdint>
#include <string_view>

namespace capo {

enum class Recipe : std::uint8_t {
  None,     ///< products read what is there, in the module's own type
  Delayed,  ///< one scale a tensor, from the largest magnitudes of earlier steps
  Current,  ///< one scale a tensor, from its own largest magnitude
  Block,    ///< fp32 scales of 1x128 elements, of weights of 128x128
  Mxfp8,    ///< scales of 32 elements, which are powers of two
  Nvfp4,    ///< elements of four bits and scales of 16 of them; it is judged and not run
};

/// The copies that products in both directions need of one operand.
enum class QuantizedCopies : std::uint8_t {
  None,
  Transposed,     ///< the second holds the numbers of the first, transposed
  EachDirection,  ///< the second is quantized apart, with scales of its own
};

struct RecipeFacts {
  Recipe recipe;
  std::string_view name;          ///< in model.json
  std::int64_t element_bits = 0;  ///< of a copy; 0 if there is none
  std::int64_t block = 0;         ///< elements of a line that share a scale; 0: the whole tensor
  bool square_weights = false;    ///< a scale of a weight is of as many lines as elements
  std::int64_t scale_bytes = 0;   ///< of one scale
  std::int64_t lines_to = 1;      ///< scales are allocated for a multiple of so many lines
  std::int64_t blocks_to = 1;     ///< and for a multiple of so many blocks of a line
  QuantizedCopies copies = QuantizedCopies::None;
  /// Magnitudes of earlier steps and the scales that follow from them outlive a graph, and Python
  /// changes them between replays.
  bool state_outside = false;
  bool runs = true;  ///< engines may run it
};

[[nodiscard]] const RecipeFacts& facts_of(Recipe recipe);

/// "none", "delayed", "current", "block", "mxfp8", "nvfp4".
[[nodiscard]] std::string_view name_of(Recipe recipe);

/// Whether products read copies in fewer bits.
[[nodiscard]] bool quantizes(Recipe recipe);

/// A weight that was quantized before is quantized again at a replay, or not: this decides it.
enum class WeightCache : std::uint8_t {
  Device,  ///< a number on the device, which is set before the replay
  Python,  ///< a flag in Python, which the capture bakes in
};

/// "device", "python".
[[nodiscard]] std::string_view name_of(WeightCache cache);

/// The elements of a line share a scale in blocks; lines are rows, or columns.
enum class CopyLines : std::uint8_t { Rows, Columns };

/// A copy of a matrix.
struct QuantizedCopy {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  CopyLines lines = CopyLines::Columns;
  bool weight = false;

  friend bool operator==(const QuantizedCopy&, const QuantizedCopy&) = default;
};

/// Bytes of the elements, and of the scales as they are allocated; the largest number if they are
/// more than 64 bits hold. 0 for a recipe that makes no copy.
[[nodiscard]] std::int64_t element_bytes_of(Recipe recipe, const QuantizedCopy& copy);
[[nodiscard]] std::int64_t scale_bytes_of(Recipe recipe, const QuantizedCopy& copy);
/// Both together.
[[nodiscard]] std::int64_t copy_bytes(Recipe recipe, const QuantizedCopy& copy);

}  // namespace capo
