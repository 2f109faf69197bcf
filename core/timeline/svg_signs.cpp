// Findings as red signs, and room for their words.
//
//        T09 is queued behind `0SEND_F1`
//   [F1]( s1 )( r0 )[B0]           words never lie on an arrow, on the rows of bars, on other
//          \___/                   words or beyond the page
//
// A place is tried on each side of a line, near its middle first; if there is no good one, svg.cpp
// makes the gap between the rows larger.

#include "core/base/index.h"
#include "core/text/printable.h"
#include "core/timeline/svg_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace capo {

namespace {

// A rectangle of the page.
struct Box {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;

  [[nodiscard]] bool meets(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

// The points of a line in their order, no more than some points of the page apart.
using Polyline = std::vector<SvgPoint>;

constexpr double kCell = 64;      // the side of a cell of the page
constexpr double kStep = 6;       // between the points of a line
constexpr double kStroke = 2;     // half of the room that a line takes
constexpr double kBeside = 3;     // between a line and its words, without what the line takes
constexpr double kLetter = 0.62;  // the mean width of a bold letter, as wide fonts have it

std::int64_t cell_of(double along) {
  return std::llround(std::floor(along / kCell));
}

// Calls f with each cell of the page that a box lies in, until f returns false.
template <typename F>
bool for_each_cell(const Box& box, F f) {
  for (std::int64_t row = cell_of(box.top); row <= cell_of(box.bottom); ++row) {
    for (std::int64_t column = cell_of(box.left); column <= cell_of(box.right); ++column) {
      if (!f((row << 32) + column)) return false;
    }
  }
  return true;
}

Box around(SvgPoint a, SvgPoint b, double room) {
  return {.left = std::min(a.x, b.x) - room,
          .top = std::min(a.y, b.y) - room,
          .right = std::max(a.x, b.x) + room,
          .bottom = std::max(a.y, b.y) + room};
}

double between(double from, double by, double to, double t) {
  return (1 - t) * (1 - t) * from + 2 * t * (1 - t) * by + t * t * to;
}

// A place that is tried for words: the part of a line, the side of it, and how far away.
struct Try {
  double part = 0.5;
  double to_right = 0;
  double down = 0;
  double away = 0;
  bool good = false;
};

constexpr std::array<double, 9> kParts{0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.1, 0.9};

std::vector<Try> make_tries() {
  std::vector<Try> tries;
  const auto add = [&](double away, double to_right, double down, bool good) {
    for (const double part : kParts) {
      const bool near = std::abs(part - 0.5) < 0.25;
      tries.push_back({part, to_right, down, away, good && near});
    }
  };
  for (const double away : {0.0, 1.1, 2.4}) {
    for (const double down : {-1.0, 1.0}) add(away, 0, down, away == 0);
    for (const double to_right : {1.0, -1.0}) add(away, to_right, 0, away == 0);
    for (const double to_right : {1.0, -1.0}) {
      for (const double down : {-1.0, 1.0}) add(away, to_right, down, false);
    }
  }
  std::stable_sort(tries.begin(), tries.end(),
                   [](const Try& a, const Try& b) { return a.good && !b.good; });
  return tries;
}

const std::vector<Try>& all_tries() {
  static const std::vector<Try> kAll = make_tries();
  return kAll;
}

Box box_beside(SvgPoint point, const Try& each, double width, double height) {
  const double room = kStroke + kBeside + each.away * height;
  const double left = point.x + each.to_right * (width / 2 + room) - width / 2;
  const double top = point.y + each.down * (height / 2 + room) - height / 2;
  return {.left = left, .top = top, .right = left + width, .bottom = top + height};
}

// Keeps what is drawn on the rows of a picture, and words that have found a place.
class Labels {
 public:
  explicit Labels(const SvgLayout& layout) : layout_(layout) {}

  // A line that no words may lie on.
  void keep_clear(const Polyline& line);

  // Finds the place nearest to a line's middle at which words lie on nothing; nullopt if there is
  // none near the line.
  [[nodiscard]] std::optional<WordsPlace> place(const Polyline& line, std::string_view words);

 private:
  [[nodiscard]] bool is_free(const Box& box) const;
  [[nodiscard]] bool is_on_page(const Box& box) const;
  void take(const Box& box);

  const SvgLayout& layout_;
  std::unordered_map<std::int64_t, std::vector<Box>> taken_;  // by cell of the page
};

// The curve from `from` to `to` that is drawn towards `by`; straight if that is their middle.
Polyline line_along(SvgPoint from, SvgPoint by, SvgPoint to) {
  const double length =
      std::hypot(by.x - from.x, by.y - from.y) + std::hypot(to.x - by.x, to.y - by.y);
  const auto steps = std::max<std::int64_t>(2, std::llround(length / kStep));
  Polyline line;
  for (std::int64_t step = 0; step <= steps; ++step) {
    const double t = static_cast<double>(step) / static_cast<double>(steps);
    line.push_back({between(from.x, by.x, to.x, t), between(from.y, by.y, to.y, t)});
  }
  return line;
}

void Labels::keep_clear(const Polyline& line) {
  for (std::size_t at = 1; at < line.size(); ++at) take(around(line[at - 1], line[at], kStroke));
}

std::optional<WordsPlace> Labels::place(const Polyline& line, std::string_view words) {
  const double height = layout_.measures.small;
  const double width = kLetter * height * static_cast<double>(words.size());
  const double last = static_cast<double>(line.size() - 1);
  // Between rows that touch, an arrow is too short to have anything at its side.
  const bool is_short =
      std::hypot(line.back().x - line.front().x, line.back().y - line.front().y) < 2 * kStep;
  for (const Try& each : all_tries()) {
    const SvgPoint point = line[as_index(std::llround(each.part * last))];
    const Box box = box_beside(point, each, width, height);
    if (!is_on_page(box) || !is_free(box)) continue;
    take(box);
    const double base = box.bottom - 0.2 * height;
    return WordsPlace{.at = {(box.left + box.right) / 2, base}, .good = each.good || is_short};
  }
  return std::nullopt;
}

bool Labels::is_free(const Box& box) const {
  return for_each_cell(box, [&](std::int64_t cell) {
    const auto there = taken_.find(cell);
    return there == taken_.end() ||
           std::none_of(there->second.begin(), there->second.end(),
                        [&](const Box& other) { return other.meets(box); });
  });
}

// Whether a box lies between the rows of one line of time and off their names.
bool Labels::is_on_page(const Box& box) const {
  if (box.left < layout_.axis.left || box.right > layout_.axis.width - 2) return false;
  const std::size_t line = layout_.line_of(box.top);
  const double top = box.top - layout_.drop_of(line);
  const double bottom = box.bottom - layout_.drop_of(line);
  const double begin = line > 0 ? layout_.rows_begin() : layout_.heading_end();
  if (top < begin + 2 || bottom > layout_.bottom) return false;
  const auto& rows = layout_.rows;
  const auto behind =
      std::upper_bound(rows.begin(), rows.end(), bottom,
                       [](double y, const Row& row) { return y < row.top - kBeside; });
  return behind == rows.begin() ||
         std::prev(behind)->top + std::prev(behind)->height + kBeside <= top;
}

void Labels::take(const Box& box) {
  for_each_cell(box, [&](std::int64_t cell) {
    taken_[cell].push_back(box);
    return true;
  });
}

SvgPoint middle_of(const SvgLayout& layout, const Spot& spot) {
  const Row& row = layout.row_of(spot.lane);
  return layout.point_at((spot.begin + spot.end) / 2, row.top + row.height / 2);
}

// Whether an arrow between tasks of one row goes below the bars: where no rank is on that side,
// else to the left.
bool goes_below(const SvgLayout& layout, const AlarmArrow& arrow) {
  const Row& row = layout.row_of(arrow.from.lane);
  const bool first = &row == &layout.rows.front();
  const bool last = &row == &layout.rows.back();
  return first == last ? arrow.from.begin > arrow.to.begin : last;
}

// The middle of the edge of one end that looks to the other.
SvgPoint edge_of(const SvgLayout& layout, const AlarmArrow& arrow, const Spot& spot,
                 const Spot& other) {
  SvgPoint edge = middle_of(layout, spot);
  const double way = middle_of(layout, other).y - edge.y;
  const bool down = way > 0 || (way == 0 && goes_below(layout, arrow));
  edge.y += (down ? 0.5 : -0.5) * layout.row_of(spot.lane).height;
  return edge;
}

// An arrow between rows bends to its own left, so that two that go to and fro lie apart.
Sign sign_of(const SvgLayout& layout, const AlarmArrow& arrow, const Alarm& alarm) {
  const SvgPoint a = edge_of(layout, arrow, arrow.from, arrow.to);
  const SvgPoint b = edge_of(layout, arrow, arrow.to, arrow.from);
  const double along = std::max(1.0, std::hypot(b.x - a.x, b.y - a.y));
  double aside = std::clamp(0.22 * along, 12.0, 60.0) / along;
  if (a.y == b.y && goes_below(layout, arrow) != (b.x < a.x)) aside = -aside;
  return {.alarm = &alarm,
          .is_arrow = true,
          .from = a,
          .by = {(a.x + b.x) / 2 + aside * (b.y - a.y), (a.y + b.y) / 2 - aside * (b.x - a.x)},
          .to = b,
          .words = fmt::format("{} {}", alarm.rule, printable(arrow.words, 60))};
}

// The words of a mark stand at its upper edge.
Sign sign_of(const SvgLayout& layout, const Spot& spot, const Alarm& alarm) {
  const double edge = layout.row_of(spot.lane).top - 1;
  const SvgPoint from = layout.point_at(spot.begin, edge);
  const double end = std::min(spot.end, layout.axis.end_of(layout.axis.line_at(spot.begin)));
  const SvgPoint to{from.x + (end - spot.begin) * layout.axis.per_time, from.y};
  return {.alarm = &alarm,
          .from = from,
          .by = {(from.x + to.x) / 2, from.y},
          .to = to,
          .words = alarm.rule};
}

bool is_same(const Sign& a, const Sign& b) {
  const auto key = [](const Sign& sign) {
    return std::tie(sign.from.x, sign.from.y, sign.to.x, sign.to.y, sign.words);
  };
  return key(a) == key(b);
}

// Words that several arrows to or from one task share stand at the first of them.
void say_once(std::vector<Sign>& signs) {
  std::set<std::tuple<bool, double, double, std::string>> said;
  for (Sign& sign : signs) {
    const bool begins = said.emplace(true, sign.from.x, sign.from.y, sign.words).second;
    const bool ends = said.emplace(false, sign.to.x, sign.to.y, sign.words).second;
    if (!begins || !ends) sign.words.clear();
  }
}

// Findings of one rule at one place have one sign.
std::vector<Sign> signs_without_places(const SvgLayout& layout) {
  std::vector<Sign> signs;
  for (const Alarm& alarm : layout.picture.alarms) {
    for (const AlarmArrow& arrow : alarm.arrows) signs.push_back(sign_of(layout, arrow, alarm));
    if (!alarm.arrows.empty()) continue;
    for (const Spot& spot : alarm.places) signs.push_back(sign_of(layout, spot, alarm));
  }
  const auto place = [](const Sign& sign) {
    return std::tie(sign.from.y, sign.from.x, sign.to.y, sign.to.x, sign.words);
  };
  std::stable_sort(signs.begin(), signs.end(),
                   [&](const Sign& a, const Sign& b) { return place(a) < place(b); });
  signs.erase(std::unique(signs.begin(), signs.end(), is_same), signs.end());
  say_once(signs);
  return signs;
}

Polyline line_of(const Sign& sign) {
  return line_along(sign.from, sign.by, sign.to);
}

Labels labels_beside(const std::vector<Sign>& signs, const SvgLayout& layout) {
  Labels labels(layout);
  for (const Sign& sign : signs) {
    if (sign.is_arrow) labels.keep_clear(line_of(sign));
  }
  for (const auto& links : {links_of_path(layout), links_of_chosen(layout)}) {
    for (const auto& [from, to] : links) {
      labels.keep_clear(line_along(from, {(from.x + to.x) / 2, (from.y + to.y) / 2}, to));
    }
  }
  return labels;
}

void write_marks(const SvgLayout& layout, const Alarm& alarm, Markup& out) {
  for (const Spot& spot : alarm.places) {
    out.add("<g><title>", Escaped{alarm.words}, "</title>");
    write_frame(layout, "alarm", spot, out);
    out.add("</g>\n");
  }
}

void write_sign(const SvgLayout& layout, const Sign& sign, Markup& out) {
  const auto& [alarm, is_arrow, from, by, to, words, place] = sign;
  if (!is_arrow && !place) return;
  out.add("<g><title>", Escaped{alarm->words}, "</title>");
  if (is_arrow) {
    out.add("<path class=\"alarm\" d=\"M", Length{from.x}, " ", Length{from.y}, "Q", Length{by.x},
            " ", Length{by.y}, " ", Length{to.x}, " ", Length{to.y},
            "\" marker-end=\"url(#alarm-head)\"/>");
  }
  if (place) {
    write_text(place->at, layout.measures.small, " class=\"alarm-words\" text-anchor=\"middle\"",
               words, out);
  }
  out.add("</g>\n");
}

}  // namespace

std::vector<Sign> signs_of(const SvgLayout& layout) {
  std::vector<Sign> signs = signs_without_places(layout);
  if (signs.empty()) return signs;
  Labels labels = labels_beside(signs, layout);
  for (Sign& sign : signs) {
    if (!sign.words.empty()) sign.place = labels.place(line_of(sign), sign.words);
  }
  return signs;
}

void write_alarms(const SvgLayout& layout, const std::vector<Sign>& signs, Markup& out) {
  for (const Alarm& alarm : layout.picture.alarms) write_marks(layout, alarm, out);
  if (signs.empty()) return;
  out.add(signs.size() > kManySigns ? "<g class=\"many\">\n" : "<g>\n");
  for (const Sign& sign : signs) write_sign(layout, sign, out);
  out.add("</g>\n");
}

}  // namespace capo
