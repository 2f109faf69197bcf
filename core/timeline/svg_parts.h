// The parts of a picture as SVG: the places of all that it shows, rows by lane, bars by action,
// lines of time, and functions that each write one part there.
//
//   rank 0  compute  [F0][F1][F2]    a row is a lane of a rank; a bar crosses into the next line
//           p2p        [s0]          where time is folded, and is two pieces then
//
// Tested by svg_test.cpp.

#pragma once

#include "core/timeline/markup.h"
#include "core/timeline/picture.h"
#include "core/timeline/svg_page.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo {

/// The tasks of one action: its parts, if its layers are taken apart.
struct Bars {
  std::size_t first = 0;
  std::size_t last = 0;  ///< one past the end, in the order of SvgLayout::sorted
};

/// Heights are those of the first line of time.
struct Row {
  std::int32_t rank = 0;
  std::string name;
  double top = 0;
  double height = 0;
};

struct SvgPoint {
  double x = 0;
  double y = 0;
};

/// The part of a stretch of time that lies on one line.
struct Piece {
  double x = 0;
  double width = 0;
  double drop = 0;  ///< how far below the first line
};

class SvgLayout {
 public:
  /// `room`: by rank, what the gap above it has besides the usual one; the last is below all ranks.
  SvgLayout(const Picture& picture, const SvgOptions& options, const Axis& axis, double top,
            std::vector<double> room);

  const Picture& picture;
  const Timeline& timeline;
  const SvgOptions& options;
  const Axis& axis;
  Measures measures;
  double top = 0;                     ///< of the picture on its page
  std::vector<double> room;           ///< by gap between ranks, for words
  std::vector<std::uint32_t> sorted;  ///< positions of Timeline::tasks
  std::vector<Bars> actions;
  std::vector<Row> rows;
  std::vector<double> bands;  ///< by rank: its upper end
  double bottom = 0;          ///< of the rows
  double line = 0;            ///< the height of a line of time, its figures included

  [[nodiscard]] std::int32_t rank_of(const TimedTask& task) const {
    return timeline.lanes[task.lane].rank;
  }
  [[nodiscard]] const Row& row_of(std::uint32_t lane) const { return rows[row_of_[lane]]; }
  /// The row in which idle time of a rank is shown; nullptr if it has none.
  [[nodiscard]] const Row* computing_row(std::int32_t rank) const;
  [[nodiscard]] bool has_memory(std::size_t rank) const {
    return rank < timeline.memory.size() && !timeline.memory[rank].empty();
  }
  /// The end of a rank's rows and memory.
  [[nodiscard]] double end_of_band(std::size_t rank) const {
    return (rank + 1 < bands.size() ? bands[rank + 1] : bottom) - gap_above(rank + 1);
  }
  [[nodiscard]] double gap_above(std::size_t rank) const { return measures.gap + room[rank]; }
  /// The gap between ranks that is nearest to a point: 0 is the one above all ranks.
  [[nodiscard]] std::size_t gap_at(SvgPoint point) const;
  [[nodiscard]] std::vector<std::string> setting_lines() const;
  /// The height at which the words above the rows end, and that at which the rows begin.
  [[nodiscard]] double heading_end() const;
  [[nodiscard]] double rows_begin() const;
  [[nodiscard]] std::size_t text_columns() const { return columns_of(axis, measures); }

  /// The line of time that a height lies on.
  [[nodiscard]] std::size_t line_of(double y) const;
  [[nodiscard]] double drop_of(std::size_t at) const { return line * static_cast<double>(at); }
  [[nodiscard]] double x_on(double time, std::size_t at) const {
    return axis.left + (time - axis.begin_of(at)) * axis.per_time;
  }
  /// The point of a time, with a height of the first line.
  [[nodiscard]] SvgPoint point_at(double time, double y) const {
    const std::size_t at = axis.line_at(time);
    return {x_on(time, at), y + drop_of(at)};
  }

  /// Calls f with each piece of a stretch of time.
  template <typename F>
  void for_each_piece(double begin, double end, F f) const {
    const std::size_t first = axis.line_at(begin);
    const std::size_t last = std::max(first, axis.line_at(end));
    for (std::size_t at = first; at <= last; ++at) {
      const double from = std::max(begin, axis.begin_of(at));
      const double to = at == last ? end : std::min(end, axis.end_of(at));
      const double width = (to - from) * axis.per_time;
      // A stretch that ends where a line does takes no room in the next one.
      if (at > first && width < kLeastPiece) continue;
      f(Piece{.x = x_on(from, at), .width = width, .drop = drop_of(at)});
    }
  }

 private:
  static constexpr double kLeastPiece = 0.01;

  void sort_actions();
  void place_rows();
  double add_row(std::size_t rank, const std::string& name, double height, double y);
  [[nodiscard]] std::vector<bool> lanes_used() const;
  [[nodiscard]] double height_of(std::uint32_t lane) const;

  std::vector<std::size_t> row_of_;  // by lane; not to be asked for a lane without tasks
};

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
