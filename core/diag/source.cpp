#include "core/diag/source.h"

namespace capo {

std::size_t Source::append(const Source& other) {
  text += '\n';
  appended_name = other.name;
  appended_at = text.size();
  text += other.text;
  return appended_at;
}

std::string_view Source::slice(Span span) const {
  if (span.offset >= text.size()) return {};
  return std::string_view(text).substr(span.offset, span.length);
}

}  // namespace capo
