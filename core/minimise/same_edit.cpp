#include "core/minimise/same_edit.h"

#include "core/minimise/settle.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

namespace capo {

namespace {

std::string letters_of(std::string_view text) {
  std::string letters;
  std::copy_if(text.begin(), text.end(), std::back_inserter(letters),
               [](unsigned char c) { return std::isalpha(c) != 0; });
  return letters;
}

std::string shape_of(const std::string& text, std::vector<Edit> edits) {
  std::sort(edits.begin(), edits.end(),
            [](const Edit& a, const Edit& b) { return a.span.offset < b.span.offset; });
  std::string shape;
  for (const Edit& edit : edits) {
    if (!shape.empty()) shape += ';';
    shape += letters_of(std::string_view(text).substr(edit.span.offset, edit.span.length));
    shape += '>' + letters_of(edit.replacement);
  }
  return shape;
}

}  // namespace

Miswritten miswritten_of(const Schedule& schedule, const Mistake& mistake) {
  const Entry& entry = schedule.ranks.front().order[mistake.position];
  const bool same = entry.chunk == mistake.meant.chunk;
  return {.kind = entry.kind, .chunk = same ? std::nullopt : std::optional(entry.chunk)};
}

Schedule with_meant(Schedule schedule, const Mistake& mistake) {
  settle(schedule);
  Entry& entry = schedule.ranks.front().order[mistake.position];
  entry.kind = mistake.meant.kind;
  entry.chunk = mistake.meant.chunk;
  entry.offset = kFollowed;
  settle(schedule);
  return schedule;
}

std::optional<Mistake> mistake_in(const Schedule& meant) {
  const std::vector<Entry>& order = meant.ranks.front().order;
  const auto at = std::find_if(order.begin(), order.end(),
                               [](const Entry& entry) { return entry.offset == kFollowed; });
  if (at == order.end()) return std::nullopt;
  return Mistake{.position = static_cast<std::size_t>(at - order.begin()), .meant = at->action()};
}

Schedule as_miswritten(Schedule meant, const Mistake& mistake, const Miswritten& miswritten) {
  Entry& entry = meant.ranks.front().order[mistake.position];
  entry.kind = miswritten.kind;
  entry.chunk = miswritten.chunk.value_or(entry.chunk);
  entry.offset = 0;
  settle(meant);
  return meant;
}

std::vector<std::string> cures_of(const Input& input, const CheckResult& found,
                                  std::string_view rule, const JudgeText& judge) {
  CheckResult tried = found;
  keep_cures_that_work(tried, input, judge);
  std::vector<std::string> shapes;
  for (const Diagnostic& finding : tried.diagnostics.kept()) {
    if (finding.rule != rule || finding.help.edits.empty()) continue;
    shapes.push_back(shape_of(input.source.text, finding.help.edits));
  }
  return shapes;
}

}  // namespace capo
