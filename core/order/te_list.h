// TransformerEngine's `_order`, exactly as Python holds it: a list of numbers.
//
//   [1, 1, -1, -1.5, -1, -1.5]     +i forward of chunk i, -i backward, -i-0.5 delayed weight
//   gradient
//
// The list is kept raw, because TE sees it raw: NaN, `-1.25`, `0` and the float-typed `1.0` all
// have a behaviour there, which the te profile predicts. What the numbers mean is read by
// core/order/read_te_list; whether they mean anything is judged by the rules of shape.

#pragma once

#include "core/diag/span.h"

#include <cstdint>
#include <vector>

namespace capo {

enum class NumberType : std::uint8_t {
  Integer,  ///< `1`: a Python int
  Float,    ///< `1.0`, `-1.5`, `1e3`, `nan`: a Python float
};

struct TeEntry {
  double value = 0;  ///< an int beyond 2^53 is rounded: no list is that long, so no verdict changes
  std::uint32_t offset = 0;
  std::uint16_t length = 0;  ///< cut at 65535
  NumberType type = NumberType::Integer;

  [[nodiscard]] Span span() const { return {.offset = offset, .length = length}; }
};

struct TeList {
  std::vector<TeEntry> entries;
};

}  // namespace capo
