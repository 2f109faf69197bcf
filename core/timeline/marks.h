// How tasks look in every picture: the class and the letter of their kind, and the colours of the
// class.
//
//   Forward -> class F, letter F, blue        SendForward -> class transfer, letter s, grey
//
// Tested by svg_test.cpp and page_test.cpp.

#pragma once

#include "core/order/schedule.h"

#include <array>
#include <string>
#include <string_view>

namespace capo {

/// Fill and outline, on a light page and on a dark one.
struct Ink {
  std::string_view name;  ///< the class of tasks that it is for
  std::string_view fill;
  std::string_view line;
  std::string_view dark_fill;
  std::string_view dark_line;
};

/// Blue and orange differ for every kind of colour blindness, and all three kinds of computations
/// differ in lightness. Colour Universal Design's palette is the source of the hues.
inline constexpr std::array<Ink, 5> kInks{{
    {"F", "#9ccbee", "#1c5a8c", "#1f6197", "#9ccbee"},
    {"B", "#f8bd66", "#8a5200", "#935a05", "#f8bd66"},
    {"W", "#5fb795", "#0b5a3e", "#14704f", "#7fd3b2"},
    {"transfer", "#dcdfe6", "#7b8494", "#3a414d", "#8d97a8"},
    {"collective", "#d9b8e0", "#75408a", "#5d3470", "#d9b8e0"},
}};

/// The name of an ink.
[[nodiscard]] std::string_view ink_of(Kind kind);

/// The letter that a bar shows before its chunk and microbatch.
[[nodiscard]] std::string_view letter_of(Kind kind);

/// Whether a text stands in XML as it is. Nearly every one does, and a large picture has many.
[[nodiscard]] bool is_plain(std::string_view text);

/// Text as XML and HTML hold it, between tags and in attributes.
[[nodiscard]] std::string escaped(std::string_view text);

}  // namespace capo
