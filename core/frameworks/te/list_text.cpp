#include "core/frameworks/te/list_text.h"

#include "core/text/number.h"
#include "core/text/scan.h"

#include <fmt/format.h>

#include <algorithm>

namespace capo {

namespace {

class Reader {
 public:
  Reader(std::string_view text, const Limits& limits) : text_(text), limits_(limits) {}

  Read<TeList> read() {
    // An entry takes at least two bytes, its separator included; one pass of growth is enough.
    list_.entries.reserve(std::min<std::size_t>(text_.size() / 4 + 1, limits_.entries));
    skip_filler();
    if (at_ < text_.size() && text_[at_] == '[') return read_bracketed();
    if (at_ == text_.size()) {
      return malformed(span_of(0, text_.size()), "the input holds no order",
                       "write one such as `[1, -1]`; an empty order is `[]`");
    }
    if (auto refusal = read_entries()) return std::move(*refusal);
    if (at_ < text_.size()) return unexpected();
    return std::move(list_);
  }

 private:
  Read<TeList> read_bracketed() {
    const std::size_t open = at_++;
    skip_filler();
    if (auto refusal = read_entries()) return std::move(*refusal);
    if (at_ == text_.size()) {
      return malformed(span_of(open, open + 1), "this bracket is never closed",
                       "end the list with `]`; is the input cut short?");
    }
    if (text_[at_] != ']') return unexpected();
    ++at_;
    skip_filler();
    if (at_ < text_.size()) {
      return malformed(span_of(at_, at_ + 1), "text after the end of the list",
                       "give one list at a time");
    }
    return std::move(list_);
  }

  // Entries up to a bracket or the end; a comma needs an entry before it.
  std::optional<Refusal> read_entries() {
    bool entry_before = false;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ']' || c == '[') return std::nullopt;
      if (c == ',') {
        if (!entry_before) {
          return malformed(span_of(at_, at_ + 1), "a comma with no entry before it");
        }
        entry_before = false;
        ++at_;
      } else if (c == '(') {
        if (list_.entries.empty()) {
          return malformed(span_of(at_, at_ + 1), "an annotation with no entry before it");
        }
        if (auto refusal = skip_annotation()) return refusal;
      } else {
        if (auto refusal = read_entry()) return refusal;
        entry_before = true;
      }
      skip_filler();
    }
    return std::nullopt;
  }

  std::optional<Refusal> read_entry() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && !ends_entry(text_[at_])) ++at_;
    const std::string_view token = text_.substr(begin, at_ - begin);
    const std::optional<Number> number = read_number(token);
    if (!number) {
      return malformed(span_of(begin, at_), fmt::format("{} is not a number", shown(token)),
                       "an entry is `i`, `-i` or `-i.5`, with i the chunk");
    }
    if (list_.entries.size() >= limits_.entries) {
      return too_many_entries(span_of(begin, at_), limits_);
    }
    list_.entries.push_back(
        {.value = number->value,
         .offset = static_cast<std::uint32_t>(begin),
         .length = static_cast<std::uint16_t>(std::min<std::size_t>(token.size(), 0xffff)),
         .type = number->type});
    return std::nullopt;
  }

  std::optional<Refusal> skip_annotation() {
    const std::size_t open = at_;
    const std::size_t close = text_.find_first_of("()\n", open + 1);
    if (close == std::string_view::npos || text_[close] != ')') {
      return malformed(span_of(open, open + 1), "this annotation is never closed",
                       "close it with `)` on the same line");
    }
    at_ = close + 1;
    return std::nullopt;
  }

  static constexpr bool ends_entry(char c) {
    return is_blank(c) || c == ',' || c == '[' || c == ']' || c == '(' || c == '#';
  }

  void skip_filler() {
    while (at_ < text_.size()) {
      if (is_blank(text_[at_])) {
        ++at_;
      } else if (text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return;
      }
    }
  }

  [[nodiscard]] Refusal unexpected() const {
    if (text_[at_] == '[') {
      return malformed(span_of(at_, at_ + 1), "a bracket inside the list",
                       "a TE list is one list of numbers; for several ranks write an .order file");
    }
    return malformed(span_of(at_, at_ + 1), fmt::format("unexpected {}", shown(text_[at_])));
  }

  std::string_view text_;
  const Limits& limits_;
  std::size_t at_ = 0;
  TeList list_;
};

}  // namespace

Read<TeList> read_te_list(std::string_view text, const Limits& limits) {
  if (auto refusal = refuse_bytes(text, limits)) return std::move(*refusal);
  return Reader(text, limits).read();
}

std::string print_te_list(const TeList& list) {
  std::string text = "[";
  for (const TeEntry& entry : list.entries) {
    if (text.size() > 1) text += ", ";
    text += to_text(Number{.value = entry.value, .type = entry.type});
  }
  return text + "]\n";
}

}  // namespace capo
