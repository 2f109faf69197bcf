// XML as it is written: pieces of text and numbers one after another.
//
//   markup.add("<rect x=\"", Length{12.5}, "\"/>\n")      <rect x="12.5"/>
//
// A large picture has a hundred thousand numbers, which formatted one by one from a pattern took
// nine tenths of the time. Tested by markup_test.cpp.

#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace capo {

/// A length on a page: two decimals at most, for a hundredth of a point is never seen.
struct Length {
  double value = 0;
};

/// A number in the fewest digits that are read back as the same one.
struct ExactNumber {
  double value = 0;
};

/// Text that may hold what is markup in XML.
struct Escaped {
  std::string_view text;
};

class Markup {
 public:
  template <typename... Pieces>
  void add(const Pieces&... pieces) {
    (put(pieces), ...);
  }

  /// Makes room for so many bytes, where nothing is written yet.
  void expect(std::size_t bytes) { text_.reserve(bytes); }

  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  void put(std::string_view text) { text_.append(text); }
  void put(char c) { text_.push_back(c); }
  void put(Length length);
  void put(ExactNumber number);
  void put(Escaped escaped);
  template <typename Integer>
  requires std::is_integral_v<Integer>
  void put(Integer value) {
    char digits[24];
    text_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  }

  std::string text_;
};

}  // namespace capo
