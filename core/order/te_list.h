// A list of numbers as a bare order is written, exactly as Python holds it.
//
//   [1, 1, -1, -1.5, -1, -1.5]     +i is a forward of chunk i, -i its backward, -i-0.5 the weight
//                                  gradient of a backward that delays it
//
// The list is kept raw, because the framework sees it raw: NaN, `-1.25`, `0` and the float-typed
// `1.0` all have a behaviour there, which a profile predicts. core/frameworks/te reads the numbers;
// the rules of shape judge whether they mean anything.

#pragma once

#include "core/diag/span.h"

#include <cstdint>
#include <vector>

namespace capo {

enum class NumberType : std::uint8_t {
  Integer,  ///< `1`: a Python int
  Float,    ///< `1.0`, `-1.5`, `1e3`, `nan`: a Python float
  /// A float as NumPy or PyTorch prints it, `1.` of `[ 1. -1.5]`, where one half makes floats of
  /// all: a whole one names a chunk, as long as nobody asks what TE does with the float itself.
  PrintedFloat,
};

struct TeEntry {
  /// An int beyond 2^53 is rounded. No list is that long, so no verdict changes.
  double value = 0;
  std::uint32_t offset = 0;
  std::uint16_t length = 0;  ///< cut at 65535
  NumberType type = NumberType::Integer;

  [[nodiscard]] Span span() const { return {.offset = offset, .length = length}; }
};

struct TeList {
  std::vector<TeEntry> entries;
};

}  // namespace capo
