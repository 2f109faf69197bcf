// A text compiled into the program by cmake/embed_texts.cmake.

#pragma once

#include <span>
#include <string_view>

namespace capo {

struct EmbeddedText {
  std::string_view name;  ///< the file's stem, e.g. "S07"
  std::string_view text;
};

/// The essays of core/rules/essays/, one per rule, named by rule id.
std::span<const EmbeddedText> embedded_essays();

/// The files of core/timeline/page/: "frame", "style" and the scripts.
std::span<const EmbeddedText> embedded_page();

}  // namespace capo
