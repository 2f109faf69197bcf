// The text a schedule came from, under the name that messages use for it.
//
// Positions are byte offsets everywhere; line_column() turns one into what an editor shows. Columns
// count bytes from 1, as g++ and ninja do. Tested by source_test.cpp.

#pragma once

#include <capo/core/diag/span.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace capo {

struct LineColumn {
  std::size_t line = 1;
  std::size_t column = 1;

  friend bool operator==(const LineColumn&, const LineColumn&) = default;
};

struct Source {
  std::string name;  ///< a path, "<order>" for --order, "<stdin>"
  std::string text;

  [[nodiscard]] LineColumn line_column(std::size_t offset) const;
  /// The bytes of `span`, cut to the text.
  [[nodiscard]] std::string_view slice(Span span) const;
  /// The whole line that holds `offset`, without its line end.
  [[nodiscard]] std::string_view line_at(std::size_t offset) const;
};

}  // namespace capo
