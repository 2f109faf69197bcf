// A stretch of one input text, in bytes. Lines and columns are looked up in the Source when
// printing.

#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace capo {

struct Span {
  std::uint32_t offset = 0;
  std::uint32_t length = 0;

  friend auto operator<=>(const Span&, const Span&) = default;
};

/// The span of bytes [begin, end).
[[nodiscard]] constexpr Span span_of(std::size_t begin, std::size_t end) {
  return {.offset = static_cast<std::uint32_t>(begin),
          .length = static_cast<std::uint32_t>(end - begin)};
}

/// A place in the input at which something stands. The index counts as messages do, from 0: entries
/// of a list or an order, cells of a table.
struct Place {
  std::int32_t rank = 0;
  std::size_t index = 0;

  friend bool operator==(const Place&, const Place&) = default;
};

}  // namespace capo
