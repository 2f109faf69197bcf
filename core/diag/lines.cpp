#include "core/diag/lines.h"

#include "core/base/index.h"

#include <algorithm>

namespace capo {

Lines::Lines(const Source& source) : source_(&source), begins_{0} {
  const std::string& text = source.text;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', end + 1))
    begins_.push_back(end + 1);
  if (source.appended_at != Source::kNothingAppended) appended_ = index_of(source.appended_at);
}

std::size_t Lines::index_of(std::size_t offset) const {
  const auto next = std::upper_bound(begins_.begin(), begins_.end(), offset);
  return as_index(next - begins_.begin()) - 1;
}

LineColumn Lines::place(std::size_t offset) const {
  offset = std::min(offset, source_->text.size());
  const std::size_t line = index_of(offset);
  const std::size_t first = offset < source_->appended_at ? 0 : appended_;
  return {.line = line - first + 1, .column = offset - begins_[line] + 1};
}

std::string_view Lines::line_at(std::size_t offset) const {
  const std::size_t index = index_of(std::min(offset, source_->text.size()));
  const std::size_t end =
      index + 1 < begins_.size() ? begins_[index + 1] - 1 : source_->text.size();
  std::string_view line =
      std::string_view(source_->text).substr(begins_[index], end - begins_[index]);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace capo
