// The text a schedule came from, under the name that messages use for it.
//
// Positions are byte offsets everywhere; Lines (lines.h) turn one into what an editor shows. A
// second text can be appended, so that one schedule may come from two files; it keeps a name of its
// own. Tested by source_test.cpp.

#pragma once

#include "core/diag/span.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace capo {

struct Source {
  std::string name;  ///< a path, "<order>" for --order, "<stdin>"
  std::string text;
  std::string appended_name;
  std::size_t appended_at = kNothingAppended;  ///< offset of the second text

  static constexpr std::size_t kNothingAppended = static_cast<std::size_t>(-1);

  /// Puts another text behind this one. Returns the number by which its offsets have grown.
  std::size_t append(const Source& other);
  /// The name of the text that holds `offset`.
  [[nodiscard]] const std::string& name_at(std::size_t offset) const {
    return offset < appended_at ? name : appended_name;
  }
  /// The bytes of `span`, cut to the text.
  [[nodiscard]] std::string_view slice(Span span) const;
};

}  // namespace capo
