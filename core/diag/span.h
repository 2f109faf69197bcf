// A stretch of one input text, in bytes. Lines and columns are looked up in the Source when
// printing.

#pragma once

#include <compare>
#include <cstdint>

namespace capo {

struct Span {
  std::uint32_t offset = 0;
  std::uint32_t length = 0;

  friend auto operator<=>(const Span&, const Span&) = default;
};

}  // namespace capo
