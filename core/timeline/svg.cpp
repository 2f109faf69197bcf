#include "core/base/plural.h"
#include "core/text/printable.h"
#include "core/timeline/marks.h"
#include "core/timeline/svg_page.h"
#include "core/timeline/svg_parts.h"
#include "core/timeline/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capo {

namespace {

// A task and the idle time before it usually take so many, so that large pictures are not moved
// about.
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

// A picture whose words have found their places.
struct Sheet {
  SvgLayout layout;
  std::vector<Sign> signs;
};

// Words that found no room beside their arrow stand below those of its finding, if they are said
// nowhere else.
double write_findings(const Sheet& sheet, double y, Markup& out) {
  const SvgLayout& layout = sheet.layout;
  const double size = layout.measures.print;
  const auto write = [&](const std::string& words, std::string_view look) {
    for (const std::string& line : wrapped(printable(words), layout.text_columns())) {
      write_text({layout.measures.margin, y}, size, look, line, out);
      y += 1.35 * size;
    }
  };
  std::set<std::string> said{""};
  std::multimap<const Alarm*, const Sign*> without_room;
  for (const Sign& sign : sheet.signs) {
    if (sign.place) said.insert(sign.words);
    if (sign.is_arrow && !sign.place) without_room.emplace(sign.alarm, &sign);
  }
  for (const Alarm& alarm : layout.picture.alarms) {
    write(alarm.words, " class=\"finding\"");
    const auto [first, last] = without_room.equal_range(&alarm);
    for (auto at = first; at != last; ++at) {
      if (said.insert(at->second->words).second) write(at->second->words, kSoft);
    }
  }
  return y + layout.measures.margin - size;
}

// Writes what stands below the rows, with the keys of the kinds if the picture is the last on the
// page. Returns where it ends.
double write_below(const Sheet& sheet, bool with_legend, Markup& out) {
  const SvgLayout& layout = sheet.layout;
  const double rows = layout.bottom + layout.drop_of(layout.axis.lines - 1);
  const double below = rows + 2.6 * layout.measures.print;
  return write_findings(sheet, with_legend ? write_legend(layout, below, out) : below, out);
}

void write_picture(const Sheet& sheet, bool with_legend, Markup& out) {
  const SvgLayout& layout = sheet.layout;
  write_header(layout, out);
  write_bands(layout, out);
  write_axis(layout, out);  // whose lines lie under the bars
  write_bubbles(layout, out);
  write_memory(layout, out);
  write_actions(layout, out);
  write_path(layout, out);
  write_chosen(layout, out);
  write_alarms(layout, sheet.signs, out);
  write_below(sheet, with_legend, out);
}

// Lines of words that gaps are widened by at most, one after another; where more are wanted, words
// stand below.
constexpr std::size_t kMostLines = 6;

bool is_poor(const Sign& sign) {
  return !sign.words.empty() && !(sign.place && sign.place->good);
}

// How much the words of a sheet lack: those without a place count most.
std::size_t lack_of(const Sheet& sheet) {
  std::size_t lack = 0;
  for (const Sign& sign : sheet.signs) {
    if (is_poor(sign)) lack += sign.place ? 1 : kManySigns;
  }
  return lack;
}

// Widens the gaps that words without a good place belong to by a line.
void widen(const Sheet& sheet, std::vector<double>& room) {
  std::set<std::size_t> gaps;
  for (const Sign& sign : sheet.signs) {
    const SvgPoint middle{(sign.from.x + 2 * sign.by.x + sign.to.x) / 4,
                          (sign.from.y + 2 * sign.by.y + sign.to.y) / 4};
    if (is_poor(sign)) gaps.insert(sheet.layout.gap_at(middle));
  }
  for (const std::size_t gap : gaps) room[gap] += 1.15 * sheet.layout.measures.small;
}

Sheet sheet_of(const Picture& picture, const SvgOptions& options, const Axis& axis, double top,
               const std::vector<double>& room) {
  Sheet sheet{.layout = SvgLayout(picture, options, axis, top, room), .signs = {}};
  sheet.signs = signs_of(sheet.layout);
  return sheet;
}

// A picture with as much room between its ranks as helps the words of its findings.
Sheet sheet_with_room(const Picture& picture, const SvgOptions& options, const Axis& axis,
                      double top) {
  const bool arrows = std::any_of(picture.alarms.begin(), picture.alarms.end(),
                                  [](const Alarm& alarm) { return !alarm.arrows.empty(); });
  const double small = measures_of(options.page).small;
  std::vector<double> room(picture.timeline.ranks + 1, arrows ? 2 * small : 0);
  std::list<Sheet> tried;
  tried.push_back(sheet_of(picture, options, axis, top, room));
  if (tried.front().signs.size() > kManySigns) return std::move(tried.front());
  while (lack_of(tried.back()) > 0 && tried.size() <= kMostLines) {
    widen(tried.back(), room);
    tried.push_back(sheet_of(picture, options, axis, top, room));
  }
  const auto best =
      std::min_element(tried.begin(), tried.end(),
                       [](const Sheet& a, const Sheet& b) { return lack_of(a) < lack_of(b); });
  return std::move(*best);
}

// One picture below the other on one axis. Their heights, which the head of the file says, are
// known before a large text is begun, which is never copied then.
std::string svg_of(const std::vector<const Picture*>& pictures, const SvgOptions& options) {
  const Axis axis = axis_of(pictures, options);
  std::vector<Sheet> sheets;
  double below = 0;
  std::size_t tasks = 0;
  for (const Picture* picture : pictures) {
    sheets.push_back(sheet_with_room(*picture, options, axis, below));
    Markup measured;
    below = write_below(sheets.back(), picture == pictures.back(), measured);
    tasks += picture->timeline.tasks.size();
  }
  Markup page;
  page.expect(kBytesOfTask * tasks);
  write_page_head(pictures, options.page, axis, below, page);
  for (const Sheet& sheet : sheets) write_picture(sheet, &sheet == &sheets.back(), page);
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
