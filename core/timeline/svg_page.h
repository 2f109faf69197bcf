// The page of an SVG: its sizes, its colours, and the axis of time that all pictures on it share.
//
// The axis can be folded like the lines of a text: a long step then makes a page and no ribbon.
//
//   |F0|F1|F2|F3|B0|        line 0
//   |B1|B2|B3|              line 1
//
// Tested by svg_test.cpp.

#pragma once

#include "core/timeline/markup.h"
#include "core/timeline/picture.h"

#include <cstddef>
#include <string>
#include <vector>

namespace capo {

/// Lengths in points of the page. A column of a paper is 85 mm wide.
struct Measures {
  double print = 11;      // the size of ordinary text
  double small = 9;       // of the names of lanes, and of bars that are low
  double computing = 22;  // the height of a lane of computations
  double moving = 13;     // of a lane of transfers or collectives
  double memory = 20;     // of the curve of memory
  double gap = 8;         // between ranks
  double names = 118;     // the width of the names at the left
  double margin = 10;
  double bar = 28;         // the length of a usual bar, with room for letter and number
  double line = 1200;      // of the axis of time, beyond which it can be folded
  double fixed_width = 0;  // of the page; 0: as wide as its tasks need
};

[[nodiscard]] Measures measures_of(Page page);

/// The axis of time that the pictures of a page share.
struct Axis {
  double left = 0;
  double width = 0;  ///< of the page
  double per_time = 0;
  double span = 0;        ///< the time at its end
  std::size_t lines = 1;  ///< that it is folded into
  double per_line = 0;    ///< the time of a line

  [[nodiscard]] double begin_of(std::size_t line) const {
    return per_line * static_cast<double>(line);
  }
  [[nodiscard]] double end_of(std::size_t line) const {
    return line + 1 == lines ? span : begin_of(line + 1);
  }
  /// The line on which something begins, or, of what ends where a line does, the one before.
  [[nodiscard]] std::size_t line_at(double time) const;
};

[[nodiscard]] Axis axis_of(const std::vector<const Picture*>& pictures, const SvgOptions& options);

/// The bytes that fit into the width of a page.
[[nodiscard]] std::size_t columns_of(const Axis& axis, const Measures& measures);

/// The file begins with this, before the pictures.
void write_page_head(const std::vector<const Picture*>& pictures, Page page, const Axis& axis,
                     double height, Markup& out);

}  // namespace capo
