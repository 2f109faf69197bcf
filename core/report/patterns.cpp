#include "core/report/patterns.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>

namespace capo {

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// A message cut into the words between its numbers, and the numbers.
struct CutMessage {
  std::string words;  // a NUL for each number, which no message holds
  std::vector<std::uint64_t> numbers;
};

CutMessage cut(std::string_view text) {
  CutMessage message;
  while (!text.empty()) {
    const auto number = std::find_if(text.begin(), text.end(), is_digit);
    const auto end = std::find_if_not(number, text.end(), is_digit);
    message.words.append(text.begin(), number);
    if (number != end) {
      // A number too large to hold stays what it is, as words.
      std::uint64_t value = 0;
      const auto read = std::from_chars(&*number, &*number + (end - number), value);
      if (read.ec == std::errc{}) {
        message.words += '\0';
        message.numbers.push_back(value);
      } else {
        message.words.append(number, end);
      }
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.begin()));
  }
  return message;
}

struct Range {
  std::uint64_t least;
  std::uint64_t most;
};

struct Gathered {
  Pattern pattern;
  CutMessage first;
  std::vector<Range> ranges;
};

void add(Gathered& group, const Diagnostic& finding, const CutMessage& message) {
  group.pattern.findings.push_back(&finding);
  if (group.ranges.empty()) {
    for (const std::uint64_t number : message.numbers) group.ranges.push_back({number, number});
  }
  for (std::size_t i = 0; i < message.numbers.size(); ++i) {
    group.ranges[i].least = std::min(group.ranges[i].least, message.numbers[i]);
    group.ranges[i].most = std::max(group.ranges[i].most, message.numbers[i]);
  }
}

std::string words_of(const Gathered& group) {
  std::string words;
  std::size_t number = 0;
  for (const char c : group.first.words) {
    if (c != '\0') {
      words += c;
      continue;
    }
    const Range& range = group.ranges[number++];
    words += range.least == range.most ? std::to_string(range.least)
                                       : fmt::format("{}..{}", range.least, range.most);
  }
  return words;
}

}  // namespace

std::vector<Pattern> patterns_of(const std::vector<Diagnostic>& findings) {
  std::vector<Gathered> groups;
  std::map<std::tuple<std::string_view, Severity, std::string>, std::size_t> known;
  for (const Diagnostic& finding : findings) {
    CutMessage message = cut(finding.message);
    const auto [at, first] =
        known.try_emplace({finding.rule, finding.severity, message.words}, groups.size());
    if (first) groups.push_back({.pattern = {}, .first = message, .ranges = {}});
    add(groups[at->second], finding, message);
  }
  std::vector<Pattern> patterns;
  for (Gathered& group : groups) {
    group.pattern.words = words_of(group);
    patterns.push_back(std::move(group.pattern));
  }
  return patterns;
}

}  // namespace capo
