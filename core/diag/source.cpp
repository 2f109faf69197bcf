#include <capo/core/diag/source.h>

#include <algorithm>

namespace capo {

namespace {

std::size_t line_start(std::string_view text, std::size_t offset) {
  if (offset == 0) return 0;
  const std::size_t newline = text.rfind('\n', offset - 1);
  return newline == std::string_view::npos ? 0 : newline + 1;
}

}  // namespace

std::size_t Source::append(const Source& other) {
  text += '\n';
  appended_name = other.name;
  appended_at = text.size();
  text += other.text;
  return appended_at;
}

LineColumn Source::line_column(std::size_t offset) const {
  offset = std::min(offset, text.size());
  const std::size_t begin = offset < appended_at ? 0 : appended_at;
  const auto newlines = std::count(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                   text.begin() + static_cast<std::ptrdiff_t>(offset), '\n');
  return {.line = static_cast<std::size_t>(newlines) + 1,
          .column = offset - line_start(text, offset) + 1};
}

std::string_view Source::slice(Span span) const {
  if (span.offset >= text.size()) return {};
  return std::string_view(text).substr(span.offset, span.length);
}

std::string_view Source::line_at(std::size_t offset) const {
  offset = std::min(offset, text.size());
  const std::size_t start = line_start(text, offset);
  const std::size_t end = std::min(text.find('\n', start), text.size());
  std::string_view line = std::string_view(text).substr(start, end - start);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace capo
