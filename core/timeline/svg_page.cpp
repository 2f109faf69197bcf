#include "core/timeline/svg_page.h"

#include "core/base/index.h"
#include "core/timeline/marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace capo {

namespace {

constexpr std::string_view kScreenStyle = R"(
svg{font-family:Helvetica,Arial,sans-serif}
.page{fill:#ffffff}.band{fill:#f3f4f6}text{fill:#16181d}.soft{fill:#5b6270}
.F rect,.B rect,.W rect,.transfer rect,.collective rect{stroke-width:.6}
.hatch{stroke:#a9afbb;stroke-width:1}.grid{stroke:#d7dae0;stroke-width:.5}
.held{fill:#c9ced8;stroke:#5b6270;stroke-width:.7}
.together{fill:none;stroke:#16181d;stroke-width:1.4}
.chosen{fill:none;stroke:#6a1fb0;stroke-width:1.6}
.path{fill:none;stroke:#16181d;stroke-width:1.1}.head{fill:#16181d}
.alarm{fill:none;stroke:#d1002c;stroke-width:2}.many path{stroke-width:.7;stroke-opacity:.6}.alarm-head{fill:#d1002c}
.alarm-words{fill:#b30025;font-weight:bold;paint-order:stroke;stroke:#ffffff;stroke-width:3px}
.finding,.rejected text{fill:#b30025}.accepted text{fill:#0b5a3e}
@media (prefers-color-scheme:dark){
.page{fill:#14171c}.band{fill:#1d2229}text{fill:#eceef2}.soft{fill:#a2abba}
.hatch{stroke:#59616e}.grid{stroke:#343b46}.held{fill:#3a414d;stroke:#a2abba}
.together{stroke:#eceef2}.chosen{stroke:#cf9cff}.path{stroke:#eceef2}.head{fill:#eceef2}.alarm{stroke:#ff6b81}.alarm-head{fill:#ff6b81}
.alarm-words{fill:#ff8fa0;stroke:#14171c}.finding,.rejected text{fill:#ff8fa0}
.accepted text{fill:#7fd3b2}}
)";

// Greys that stay apart in print: forwards white, backwards grey, weight gradients dark.
constexpr std::string_view kColumnStyle = R"(
svg{font-family:Helvetica,Arial,sans-serif}
.page{fill:#ffffff}.band{fill:#ffffff}text{fill:#000000}.soft{fill:#333333}
.F rect,.key-F{fill:#ffffff;stroke:#000000}.B rect,.key-B{fill:#bdbdbd;stroke:#000000}
.W rect,.key-W{fill:#5a5a5a;stroke:#000000}.W text{fill:#ffffff}
.transfer rect,.key-transfer{fill:#eeeeee;stroke:#555555}.collective rect,.key-collective{fill:#d4d4d4;stroke:#555555}
.F rect,.B rect,.W rect,.transfer rect,.collective rect{stroke-width:.35}
.hatch{stroke:#999999;stroke-width:.5}.grid{stroke:#cccccc;stroke-width:.3}
.held{fill:#dddddd;stroke:#333333;stroke-width:.4}
.together{fill:none;stroke:#000000;stroke-width:.9}
.chosen{fill:none;stroke:#000000;stroke-width:1;stroke-dasharray:4 1}
.path{fill:none;stroke:#000000;stroke-width:.6}.head{fill:#000000}
.alarm{fill:none;stroke:#000000;stroke-width:1.2;stroke-dasharray:3 1.5}.many path{stroke-width:.4;stroke-dasharray:none}.alarm-head{fill:#000000}
.alarm-words{fill:#000000;font-weight:bold;paint-order:stroke;stroke:#ffffff;stroke-width:2px}
)";

// The mark of quantization within a task's bar. On a dark page it is light, as words are there; a
// column is always light.
constexpr std::string_view kQuantizeStyle =
    R"(.task rect.quantize,.quantize{fill:#16181d;stroke:none}
)";
constexpr std::string_view kDarkQuantizeStyle =
    R"(@media (prefers-color-scheme:dark){.task rect.quantize,.quantize{fill:#eceef2}}
)";

// The colours of the classes of tasks on a screen, light and dark.
std::string screen_style() {
  std::string light;
  std::string dark;
  for (const Ink& ink : kInks) {
    const std::string at = fmt::format(".{0} rect,.key-{0}", ink.name);
    light += fmt::format("{}{{fill:{};stroke:{}}}\n", at, ink.fill, ink.line);
    dark += fmt::format("{}{{fill:{};stroke:{}}}\n", at, ink.dark_fill, ink.dark_line);
  }
  return fmt::format("{}{}@media (prefers-color-scheme:dark){{\n{}}}\n", kScreenStyle, light, dark);
}

constexpr std::string_view kNamespace = "http://www.w3.org/2000/svg";

// Points of the axis of time on one line, and on all lines that it is folded into: a longer step is
// squeezed.
constexpr double kWidest = 4800;
constexpr double kLongest = 48'000;

// The number of bytes that fit into a width: letters are about half as wide as high.
std::size_t fitting(double width, double print) {
  return as_index(std::max<std::int64_t>(0, std::llround(std::floor(width / (0.56 * print)))));
}

// The points of a unit of time that give most computations room for their labels, and three of four
// at least for the shorter one that is left without a letter.
double wanted_scale(const Timeline& timeline, double bar) {
  constexpr double kShort = 0.82;  // the part of a usual bar that a short one needs
  std::vector<double> durations;
  for (const TimedTask& task : timeline.tasks) {
    if (is_compute(task.kind) && task.end > task.begin) durations.push_back(task.end - task.begin);
  }
  if (durations.empty()) return timeline.makespan > 0 ? bar / timeline.makespan : 0;
  const auto at = [&](std::size_t place) {
    const auto middle = durations.begin() + static_cast<std::ptrdiff_t>(place);
    std::nth_element(durations.begin(), middle, durations.end());
    return *middle;
  };
  return std::max(bar / at(durations.size() / 2), kShort * bar / at(durations.size() / 4));
}

void write_definitions(Page page, Markup& out) {
  const double step = page == Page::Column ? 2.5 : 5;
  out.add(fmt::format(
      "<defs><pattern id=\"idle\" width=\"{0}\" height=\"{0}\" patternUnits=\"userSpaceOnUse\" "
      "patternTransform=\"rotate(45)\"><line class=\"hatch\" y2=\"{0}\"/></pattern>\n",
      step));
  for (const std::string_view name : {"head", "alarm-head"}) {
    out.add(fmt::format(
        "<marker id=\"{0}\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"{1}\" "
        "markerHeight=\"{1}\" orient=\"auto\"><path class=\"{0}\" d=\"M0 0L8 4L0 8z\"/></marker>\n",
        name, name == "head" ? 5 : 4.5));
  }
  out.add("</defs>\n");
}

}  // namespace

Measures measures_of(Page page) {
  if (page == Page::Screen) return {};
  return {.print = 7,
          .small = 5.5,
          .computing = 11,
          .moving = 7,
          .memory = 9,
          .gap = 3,
          .names = 56,
          .margin = 2,
          .bar = 13,
          .line = 261,
          .fixed_width = 321};
}

std::size_t Axis::line_at(double time) const {
  if (lines == 1 || per_line <= 0) return 0;
  return std::min(lines - 1, as_index(std::llround(std::floor(time / per_line))));
}

Axis axis_of(const std::vector<const Picture*>& pictures, const SvgOptions& options) {
  const Measures measures = measures_of(options.page);
  Axis axis{.left = measures.margin + measures.names};
  double wide = measures.fixed_width > 0 ? measures.line : 640;
  for (const Picture* picture : pictures) {
    const Timeline& timeline = picture->timeline;
    const double bar = measures.bar * (timeline.one_chunk ? 1 : 1.18);
    axis.span = std::max(axis.span, timeline.makespan);
    wide = std::max(wide, wanted_scale(timeline, bar) * timeline.makespan);
  }
  wide = std::min(wide, options.fold ? kLongest : kWidest);
  if (options.fold && axis.span > 0) {
    axis.lines = as_index(std::llround(std::ceil(wide / measures.line)));
    wide /= static_cast<double>(axis.lines);
  }
  if (measures.fixed_width > 0) wide = measures.fixed_width - axis.left - measures.margin;
  axis.width = axis.left + wide + measures.margin;
  axis.per_line = axis.span / static_cast<double>(axis.lines);
  axis.per_time = axis.span > 0 ? wide / axis.per_line : 0;
  return axis;
}

std::size_t columns_of(const Axis& axis, const Measures& measures) {
  return std::max<std::size_t>(20, fitting(axis.width - 2 * measures.margin, measures.print));
}

void write_page_head(const std::vector<const Picture*>& pictures, Page page, const Axis& axis,
                     double height, Markup& out) {
  const bool column = page == Page::Column;
  out.add(fmt::format(
      "<svg xmlns=\"{}\" viewBox=\"0 0 {:.0f} {:.0f}\" width=\"{}\" height=\"{:.1f}{}\">\n",
      kNamespace, axis.width, height, column ? "85mm" : fmt::format("{:.0f}", axis.width),
      column ? height * 85 / axis.width : height, column ? "mm" : ""));
  out.add("<title>");
  for (const Picture* picture : pictures) {
    out.add(picture == pictures.front() ? "" : " | ", Escaped{picture->title}, ": ",
            Escaped{picture->verdict});
  }
  const bool quantizes = std::any_of(pictures.begin(), pictures.end(), [](const Picture* picture) {
    return tells_quantization(picture->timeline);
  });
  out.add("</title>\n<style>", column ? std::string(kColumnStyle) : screen_style(),
          quantizes ? kQuantizeStyle : "", quantizes && !column ? kDarkQuantizeStyle : "",
          "</style>\n");
  write_definitions(page, out);
  out.add("<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n");
}

}  // namespace capo
