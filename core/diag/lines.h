// The lines of a source, which say where an editor shows an offset.
//
// A report asks for the places of thousands of spans, in texts of which one line may be all; so
// line ends are found once, and not by walking the text for each. Columns count bytes from 1, as
// g++ and ninja do; the lines of a source's second text count from 1 again. Tested by
// lines_test.cpp.

#pragma once

#include "core/diag/source.h"

#include <cstddef>
#include <string_view>
#include <vector>

namespace capo {

struct LineColumn {
  std::size_t line = 1;
  std::size_t column = 1;

  friend bool operator==(const LineColumn&, const LineColumn&) = default;
};

class Lines {
 public:
  /// `source` must outlive this and not change.
  explicit Lines(const Source& source);

  [[nodiscard]] const Source& source() const { return *source_; }
  /// An offset beyond the text counts as its end.
  [[nodiscard]] LineColumn place(std::size_t offset) const;
  /// The whole line that holds `offset`, without its line end.
  [[nodiscard]] std::string_view line_at(std::size_t offset) const;

 private:
  [[nodiscard]] std::size_t index_of(std::size_t offset) const;  // in begins_

  const Source* source_;
  std::vector<std::size_t> begins_;  // the offset at which each line begins; the first is 0
  std::size_t appended_ = 0;         // the index of the second text's first line; 0: no second text
};

}  // namespace capo
