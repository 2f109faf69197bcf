#include "core/text/printable.h"
#include "core/timeline/marks.h"
#include "core/timeline/svg_page.h"
#include "core/timeline/svg_parts.h"
#include "core/timeline/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <string>
#include <string_view>
#include <vector>

namespace capo {

namespace {

// What a task and the idle time before it usually take, so that large pictures are not moved about.
constexpr std::size_t kBytesOfTask = 512;

constexpr std::string_view kBold = " font-weight=\"bold\"";
constexpr std::string_view kSoft = " class=\"soft\"";
constexpr std::string_view kSoftEnd = " class=\"soft\" text-anchor=\"end\"";

void write_header(const SvgLayout& layout, Markup& out) {
  const Picture& picture = layout.picture;
  const Measures& measures = layout.measures;
  const double line = 1.35 * measures.print;
  double y = layout.top + measures.margin + measures.print;
  const bool column = layout.options.page == Page::Column;
  if (!column) {
    write_text({measures.margin, y}, 1.15 * measures.print, kBold, picture.title, out);
    y += line;
  }
  out.add("<g class=\"", picture.accepted ? "accepted" : "rejected", "\">");
  write_text({measures.margin, y}, measures.print, " class=\"verdict\" font-weight=\"bold\"",
             picture.verdict, out);
  out.add("</g>\n");
  if (column) return;
  for (const std::string& text : layout.setting_lines()) {
    y += line;
    write_text({measures.margin, y}, measures.print, kSoft, text, out);
  }
}

void write_band(const SvgLayout& layout, std::size_t rank, double drop, Markup& out) {
  const Measures& measures = layout.measures;
  const double top = layout.bands[rank] + drop;
  if (layout.options.page == Page::Screen) {
    out.add("<rect class=\"band\" x=\"", Length{layout.axis.left}, "\" y=\"", Length{top - 2},
            "\" width=\"", Length{layout.axis.width - layout.axis.left - measures.margin},
            "\" height=\"", Length{layout.end_of_band(rank) - layout.bands[rank] + 2}, "\"/>\n");
  }
  write_text({measures.margin, top + 1.1 * measures.print}, measures.print, kBold,
             fmt::format("rank {}", rank), out);
}

void write_bands(const SvgLayout& layout, Markup& out) {
  const double small = layout.measures.small;
  for (std::size_t line = 0; line < layout.axis.lines; ++line) {
    const double drop = layout.drop_of(line);
    for (std::size_t rank = 0; rank < layout.bands.size(); ++rank) {
      write_band(layout, rank, drop, out);
    }
    for (const Row& row : layout.rows) {
      const double baseline = row.top + drop + row.height / 2 + 0.35 * small;
      write_text({layout.axis.left - 4, baseline}, small, kSoftEnd, row.name, out);
    }
  }
}

// A step of 1, 2 or 5 times a power of ten that leaves room for figures.
double tick(const SvgLayout& layout) {
  const double least = (layout.options.page == Page::Column ? 36 : 64) / layout.axis.per_time;
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double times : {1.0, 2.0, 5.0}) {
    if (times * power >= least) return times * power;
  }
  return 10 * power;
}

std::string_view name_of_axis(const Timeline& timeline) {
  if (timeline.origin == Timeline::Origin::Listed) return "place in the order";
  return timeline.unit == Timeline::Unit::Microseconds ? "microseconds" : "units of cost";
}

void write_axis_of(const SvgLayout& layout, std::size_t line, double step, Markup& out) {
  const Axis& axis = layout.axis;
  const double drop = layout.drop_of(line);
  const double end = axis.end_of(line) + 1e-12 * axis.span;
  for (double count = std::ceil(axis.begin_of(line) / step); count * step <= end; ++count) {
    const double x = layout.x_on(count * step, line);
    out.add("<line class=\"grid\" x1=\"", Length{x}, "\" x2=\"", Length{x}, "\" y1=\"",
            Length{layout.rows_begin() + drop - 2}, "\" y2=\"", Length{layout.bottom + drop},
            "\"/>\n");
    write_text({x, layout.bottom + drop + layout.measures.print}, layout.measures.small,
               " class=\"soft\" text-anchor=\"middle\"", figure(count * step), out);
  }
}

void write_axis(const SvgLayout& layout, Markup& out) {
  const Measures& measures = layout.measures;
  const bool listed = layout.timeline.origin == Timeline::Origin::Listed;
  write_text({layout.axis.left - measures.print, layout.bottom + measures.print}, measures.small,
             kSoftEnd, name_of_axis(layout.timeline), out);
  if (layout.axis.per_time <= 0) return;
  const double step = listed ? std::max(1.0, tick(layout)) : tick(layout);
  for (std::size_t line = 0; line < layout.axis.lines; ++line) {
    write_axis_of(layout, line, step, out);
  }
}

double write_findings(const SvgLayout& layout, double y, Markup& out) {
  const double size = layout.measures.print;
  for (const Alarm& alarm : layout.picture.alarms) {
    for (const std::string& line : wrapped(printable(alarm.words), layout.text_columns())) {
      write_text({layout.measures.margin, y}, size, " class=\"finding\"", line, out);
      y += 1.35 * size;
    }
  }
  return y + layout.measures.margin - size;
}

// Writes what stands below the rows, with the keys of the kinds if the picture is the last on the
// page. Returns where it ends.
double write_below(const SvgLayout& layout, bool with_legend, Markup& out) {
  const double rows = layout.bottom + layout.drop_of(layout.axis.lines - 1);
  const double below = rows + 2.6 * layout.measures.print;
  return write_findings(layout, with_legend ? write_legend(layout, below, out) : below, out);
}

void write_picture(const SvgLayout& layout, bool with_legend, Markup& out) {
  write_header(layout, out);
  write_bands(layout, out);
  write_axis(layout, out);  // whose lines lie under the bars
  write_bubbles(layout, out);
  write_memory(layout, out);
  write_actions(layout, out);
  write_path(layout, out);
  write_chosen(layout, out);
  write_alarms(layout, out);
  write_below(layout, with_legend, out);
}

// One picture below the other on one axis. Their heights, which the head of the file says, are
// known before a large text is begun, which is never copied then.
std::string svg_of(const std::vector<const Picture*>& pictures, const SvgOptions& options) {
  const Axis axis = axis_of(pictures, options);
  std::list<SvgLayout> layouts;
  double below = 0;
  std::size_t tasks = 0;
  for (const Picture* picture : pictures) {
    layouts.emplace_back(*picture, options, axis, below);
    Markup measured;
    below = write_below(layouts.back(), picture == pictures.back(), measured);
    tasks += picture->timeline.tasks.size();
  }
  Markup page;
  page.expect(kBytesOfTask * tasks);
  write_page_head(pictures, options.page, axis, below, page);
  for (const SvgLayout& layout : layouts) write_picture(layout, &layout == &layouts.back(), page);
  page.add("</svg>\n");
  return page.take();
}

}  // namespace

void write_text(SvgPoint at, double print, std::string_view more, std::string_view text,
                Markup& out) {
  out.add("<text x=\"", Length{at.x}, "\" y=\"", Length{at.y}, "\" font-size=\"", Length{print},
          "\"", more, ">", Escaped{text}, "</text>\n");
}

std::string svg(const Picture& picture, const SvgOptions& options) {
  return svg_of({&picture}, options);
}

std::string svg(const std::vector<Picture>& pictures, const SvgOptions& options) {
  std::vector<const Picture*> all;
  for (const Picture& picture : pictures) all.push_back(&picture);
  return svg_of(all, options);
}

}  // namespace capo
