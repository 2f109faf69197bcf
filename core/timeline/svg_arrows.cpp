#include "core/text/printable.h"
#include "core/timeline/svg_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

namespace capo {

namespace {

Spot spot_of(const TimedTask& task) {
  return {.lane = task.lane, .begin = task.begin, .end = task.end};
}

SvgPoint middle_of(const SvgLayout& layout, const Spot& spot) {
  const Row& row = layout.row_of(spot.lane);
  return layout.point_at((spot.begin + spot.end) / 2, row.top + row.height / 2);
}

// The middle of the edge of one end that looks to the other. In one row an arrow to the right
// goes over the bars, and one to the left below them.
SvgPoint edge_of(const SvgLayout& layout, const AlarmArrow& arrow, const Spot& spot,
                 const Spot& other) {
  const bool lower = arrow.from.begin > arrow.to.begin;
  SvgPoint edge = middle_of(layout, spot);
  const double way = middle_of(layout, other).y - edge.y;
  const bool down = way > 0 || (way == 0 && lower);
  edge.y += (down ? 0.5 : -0.5) * layout.row_of(spot.lane).height;
  return edge;
}

// A straight arrow from the end of one task to the beginning of another. Between tasks of one lane
// that follow each other there is none to see.
void write_link(const SvgLayout& layout, std::string_view look, const TimedTask& from,
                const TimedTask& to, Markup& out) {
  if (from.lane == to.lane) return;
  const Row& above = layout.row_of(from.lane);
  const Row& below = layout.row_of(to.lane);
  SvgPoint a = layout.point_at(from.end, above.top);
  SvgPoint b = layout.point_at(to.begin, below.top);
  const double down = b.y > a.y ? 1 : 0;
  a.y += down * above.height;
  b.y += (1 - down) * below.height;
  out.add("<path class=\"", look, "\" d=\"M", Length{a.x - 1}, " ", Length{a.y}, "L",
          Length{b.x + 1}, " ", Length{b.y}, "\" marker-end=\"url(#head)\"/>\n");
}

// The frame around a stretch of a lane.
void write_frame(const SvgLayout& layout, std::string_view look, const Spot& spot, Markup& out) {
  const Row& row = layout.row_of(spot.lane);
  layout.for_each_piece(spot.begin, spot.end, [&](const Piece& piece) {
    out.add("<rect class=\"", look, "\" x=\"", Length{piece.x - 1}, "\" y=\"",
            Length{row.top + piece.drop - 1}, "\" width=\"", Length{std::max(0.8, piece.width) + 2},
            "\" height=\"", Length{row.height + 2}, "\" rx=\"2\"/>");
  });
}

// Words that stand in the picture, around their middle.
struct Words {
  SvgPoint at;
  double half = 0;  // of their width
};

// The findings of a picture in red, and where their words have found room.
class Alarms {
 public:
  Alarms(const SvgLayout& layout, Markup& out) : layout_(layout), out_(out) {}

  void write() {
    const auto& alarms = layout_.picture.alarms;
    for (const Alarm& alarm : alarms) {
      for (const Spot& spot : alarm.places) write_mark(spot, alarm);
    }
    for (const Alarm& alarm : alarms) {
      for (const AlarmArrow& arrow : alarm.arrows) write_arrow(arrow, alarm);
    }
  }

 private:
  [[nodiscard]] double small() const { return layout_.measures.small; }

  void write_mark(const Spot& spot, const Alarm& alarm) {
    out_.add("<g><title>", Escaped{alarm.words}, "</title>");
    write_frame(layout_, "alarm", spot, out_);
    if (alarm.arrows.empty()) {
      const SvgPoint at = layout_.point_at(spot.begin, layout_.row_of(spot.lane).top - 2);
      out_.add("<text class=\"alarm-words\" x=\"", Length{at.x}, "\" y=\"", Length{at.y},
               "\" font-size=\"", Length{small()}, "\">", alarm.rule, "</text>");
    }
    out_.add("</g>\n");
  }

  // An arrow bends to its own left, so that two that go to and fro lie apart.
  void write_arrow(const AlarmArrow& arrow, const Alarm& alarm) {
    const SvgPoint a = edge_of(layout_, arrow, arrow.from, arrow.to);
    const SvgPoint b = edge_of(layout_, arrow, arrow.to, arrow.from);
    const double along = std::max(1.0, std::hypot(b.x - a.x, b.y - a.y));
    const double aside = std::clamp(0.22 * along, 12.0, 60.0) / along;
    const SvgPoint by{(a.x + b.x) / 2 + aside * (b.y - a.y), (a.y + b.y) / 2 - aside * (b.x - a.x)};
    out_.add("<g><title>", Escaped{alarm.words}, "</title><path class=\"alarm\" d=\"M", Length{a.x},
             " ", Length{a.y}, "Q", Length{by.x}, " ", Length{by.y}, " ", Length{b.x}, " ",
             Length{b.y}, "\" marker-end=\"url(#alarm-head)\"/>");
    const std::string words = fmt::format("{} {}", alarm.rule, printable(arrow.words, 60));
    const SvgPoint at = free_place({(a.x + b.x) / 4 + by.x / 2, (a.y + b.y) / 4 + by.y / 2}, words);
    write_text(at, small(), " class=\"alarm-words\" text-anchor=\"middle\"", words, out_);
    out_.add("</g>\n");
  }

  // Whether words on this line would lie on bars or on the heading.
  [[nodiscard]] bool on_row(double y) const {
    const auto& rows = layout_.rows;
    const double below = y - layout_.rows_begin();
    if (layout_.axis.lines > 1 && below > 0) {
      y -= layout_.line * std::floor(below / layout_.line);
    }
    const auto behind = std::upper_bound(
        rows.begin(), rows.end(), y, [](double line, const Row& row) { return line < row.top; });
    if (behind == rows.begin()) return y < layout_.heading_end() + small();
    return y < std::prev(behind)->top + std::prev(behind)->height + 0.8 * small();
  }

  // The place nearest to the wanted one at which words neither leave the page nor lie on others.
  SvgPoint free_place(SvgPoint wanted, const std::string& words) {
    const double width = layout_.axis.width;
    const double half = 0.28 * small() * static_cast<double>(words.size());
    wanted.x =
        std::clamp(wanted.x, std::min(half + 2, width / 2), std::max(width - half - 2, width / 2));
    const double line = 1.15 * small();
    SvgPoint best = wanted;
    for (int tries = 0; tries < 16; ++tries) {
      best.y = wanted.y + line * ((tries + 1) / 2) * (tries % 2 == 0 ? 1 : -1);
      const bool taken =
          on_row(best.y) || std::any_of(words_.begin(), words_.end(), [&](const Words& other) {
            return std::abs(other.at.y - best.y) < 0.95 * line &&
                   std::abs(other.at.x - best.x) < half + other.half + 4;
          });
      if (!taken) break;
    }
    words_.push_back({.at = best, .half = half});
    return best;
  }

  const SvgLayout& layout_;
  Markup& out_;
  std::vector<Words> words_;  // of arrows
};

}  // namespace

void write_path(const SvgLayout& layout, Markup& out) {
  if (!layout.options.path) return;
  const Timeline& timeline = layout.timeline;
  for (std::size_t at = 1; at < timeline.path.size(); ++at) {
    const TimedTask& from = timeline.tasks[timeline.path[at - 1]];
    write_link(layout, "path", from, timeline.tasks[timeline.path[at]], out);
  }
}

void write_chosen(const SvgLayout& layout, Markup& out) {
  const Timeline& timeline = layout.timeline;
  const auto& chosen = layout.picture.chosen;
  if (!chosen) return;
  for (const Waiting& wait : timeline.waits) {
    if (wait.task != *chosen && wait.on != *chosen) continue;
    write_link(layout, "chosen", timeline.tasks[wait.on], timeline.tasks[wait.task], out);
  }
  write_frame(layout, "chosen", spot_of(timeline.tasks[*chosen]), out);
}

void write_alarms(const SvgLayout& layout, Markup& out) {
  Alarms(layout, out).write();
}

}  // namespace capo
