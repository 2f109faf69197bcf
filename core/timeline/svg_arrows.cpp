#include "core/timeline/svg_parts.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

namespace capo {

namespace {

Spot spot_of(const TimedTask& task) {
  return {.lane = task.lane, .begin = task.begin, .end = task.end};
}

// A straight arrow from the end of one task to the beginning of another. Between tasks of one lane
// that follow each other there is none to see.
std::optional<Link> link_between(const SvgLayout& layout, const TimedTask& from,
                                 const TimedTask& to) {
  if (from.lane == to.lane) return std::nullopt;
  const Row& above = layout.row_of(from.lane);
  const Row& below = layout.row_of(to.lane);
  SvgPoint a = layout.point_at(from.end, above.top);
  SvgPoint b = layout.point_at(to.begin, below.top);
  const double down = b.y > a.y ? 1 : 0;
  a.y += down * above.height;
  b.y += (1 - down) * below.height;
  return Link{.from = {a.x - 1, a.y}, .to = {b.x + 1, b.y}};
}

void write_links(const std::vector<Link>& links, std::string_view look, Markup& out) {
  for (const auto& [from, to] : links) {
    out.add("<path class=\"", look, "\" d=\"M", Length{from.x}, " ", Length{from.y}, "L",
            Length{to.x}, " ", Length{to.y}, "\" marker-end=\"url(#head)\"/>\n");
  }
}

}  // namespace

std::vector<Link> links_of_path(const SvgLayout& layout) {
  std::vector<Link> links;
  if (!layout.options.path) return links;
  const Timeline& timeline = layout.timeline;
  for (std::size_t at = 1; at < timeline.path.size(); ++at) {
    const TimedTask& from = timeline.tasks[timeline.path[at - 1]];
    const auto link = link_between(layout, from, timeline.tasks[timeline.path[at]]);
    if (link) links.push_back(*link);
  }
  return links;
}

std::vector<Link> links_of_chosen(const SvgLayout& layout) {
  std::vector<Link> links;
  const Timeline& timeline = layout.timeline;
  const auto& chosen = layout.picture.chosen;
  if (!chosen) return links;
  for (const Waiting& wait : timeline.waits) {
    if (wait.task != *chosen && wait.on != *chosen) continue;
    const auto link = link_between(layout, timeline.tasks[wait.on], timeline.tasks[wait.task]);
    if (link) links.push_back(*link);
  }
  return links;
}

void write_frame(const SvgLayout& layout, std::string_view look, const Spot& spot, Markup& out) {
  const Row& row = layout.row_of(spot.lane);
  layout.for_each_piece(spot.begin, spot.end, [&](const Piece& piece) {
    out.add("<rect class=\"", look, "\" x=\"", Length{piece.x - 1}, "\" y=\"",
            Length{row.top + piece.drop - 1}, "\" width=\"", Length{std::max(0.8, piece.width) + 2},
            "\" height=\"", Length{row.height + 2}, "\" rx=\"2\"/>");
  });
}

void write_path(const SvgLayout& layout, Markup& out) {
  write_links(links_of_path(layout), "path", out);
}

void write_chosen(const SvgLayout& layout, Markup& out) {
  if (!layout.picture.chosen) return;
  write_links(links_of_chosen(layout), "chosen", out);
  write_frame(layout, "chosen", spot_of(layout.timeline.tasks[*layout.picture.chosen]), out);
}

}  // namespace capo
