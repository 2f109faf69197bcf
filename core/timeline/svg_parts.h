// The parts of a picture as SVG, each of which writes itself where the layout says.
//
// Tested by svg_test.cpp.

#pragma once

#include "core/timeline/markup.h"
#include "core/timeline/svg_layout.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo {

/// Text at a point, with more attributes, each after a blank.
void write_text(SvgPoint at, double print, std::string_view more, std::string_view text,
                Markup& out);

/// A straight arrow.
struct Link {
  SvgPoint from;
  SvgPoint to;
};

/// The arrows of the critical path, and of the task that was chosen.
[[nodiscard]] std::vector<Link> links_of_path(const SvgLayout& layout);
[[nodiscard]] std::vector<Link> links_of_chosen(const SvgLayout& layout);

struct WordsPlace {
  SvgPoint at;        ///< the middle of the words' base
  bool good = false;  ///< it is seen at once what the words are about
};

/// A red arrow, or the mark of a finding that has none, with its words.
struct Sign {
  const Alarm* alarm = nullptr;
  bool is_arrow = false;
  SvgPoint from;
  SvgPoint by;  ///< the point that the line bends towards
  SvgPoint to;
  std::string words;
  std::optional<WordsPlace> place = {};  ///< nullopt: the words have no room
};

/// Signs beyond which nobody looks at each: their arrows are thin, and no room is made for words.
inline constexpr std::size_t kManySigns = 64;

/// The signs of a picture's findings, words of which lie on no arrow, row or other words.
[[nodiscard]] std::vector<Sign> signs_of(const SvgLayout& layout);

/// Idle time, memory and the actions themselves.
void write_bubbles(const SvgLayout& layout, Markup& out);
void write_memory(const SvgLayout& layout, Markup& out);
void write_actions(const SvgLayout& layout, Markup& out);

/// Arrows of the critical path, of the task that was chosen, and of findings with their words.
void write_path(const SvgLayout& layout, Markup& out);
void write_chosen(const SvgLayout& layout, Markup& out);
void write_alarms(const SvgLayout& layout, const std::vector<Sign>& signs, Markup& out);

/// The frame around a stretch of a lane.
void write_frame(const SvgLayout& layout, std::string_view look, const Spot& spot, Markup& out);

/// The keys of what is drawn; returns where they end.
double write_legend(const SvgLayout& layout, double top, Markup& out);

}  // namespace capo
