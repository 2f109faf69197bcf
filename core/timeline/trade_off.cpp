// Draws what less of one figure costs of another: lines of what was found, as stairs, since
// whatever takes so much also fits where there is more; dotted stairs below which nothing can be;
// and named points. A name stands at the first of a few places beside its points where it lies on
// no point and no other name.

#include "core/timeline/markup.h"
#include "core/timeline/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capo {

namespace {

constexpr double kWidth = 760;
constexpr double kHeight = 440;
constexpr double kLeft = 78;
constexpr double kRight = 20;
constexpr double kTop = 62;
constexpr double kBottom = 66;
constexpr double kPrint = 11;
constexpr double kAcross = 1.6;  // how far beyond the lines points are drawn
constexpr double kAbove = 1.1;
constexpr std::size_t kMostFar = 4;  // that are named below the picture
constexpr std::size_t kInks = 3;     // of lines; a fourth has the first one's again

constexpr std::string_view kStyle = R"(
svg{font-family:Helvetica,Arial,sans-serif;font-size:11px}
.page{fill:#ffffff}text{fill:#16181d}.soft{fill:#5b6270}.title{font-size:13px;font-weight:bold}
.grid{stroke:#d7dae0;stroke-width:.5}.axis{stroke:#5b6270;stroke-width:1}
.line{fill:none;stroke-width:2}.bound{fill:none;stroke-width:1.2;stroke-dasharray:2 3}
.way{fill:none;stroke:#8a919e;stroke-width:.8}.name{paint-order:stroke;stroke:#ffffff;stroke-width:3px}
.found{stroke:none}.other{fill:#ffffff;stroke:#16181d;stroke-width:1.2}
.ink0 .line,.ink0 .bound{stroke:#1f5fbf}.ink0 .found{fill:#1f5fbf}
.ink1 .line,.ink1 .bound{stroke:#b3541e}.ink1 .found{fill:#b3541e}
.ink2 .line,.ink2 .bound{stroke:#6a1fb0}.ink2 .found{fill:#6a1fb0}
@media (prefers-color-scheme:dark){
.page{fill:#14171c}text{fill:#eceef2}.soft{fill:#a2abba}.grid{stroke:#343b46}.axis{stroke:#a2abba}
.way{stroke:#6b7482}.name{stroke:#14171c}.other{fill:#14171c;stroke:#eceef2}
.ink0 .line,.ink0 .bound{stroke:#7fb2ff}.ink0 .found{fill:#7fb2ff}
.ink1 .line,.ink1 .bound{stroke:#ffb37a}.ink1 .found{fill:#ffb37a}
.ink2 .line,.ink2 .bound{stroke:#cf9cff}.ink2 .found{fill:#cf9cff}}
)";

using Point = TradeOff::Point;

// The distance of marks on an axis: 1, 2 or 5 times a power of ten, about seven of them.
double step_of(double range) {
  const double power = std::pow(10, std::floor(std::log10(range / 7)));
  for (const double times : {1.0, 2.0, 5.0}) {
    if (times * power * 7 >= range) return times * power;
  }
  return 10 * power;
}

// Values on an axis, and where they stand on the page.
class Scale {
 public:
  Scale(double begin, double end) : begin_(begin), end_(end) {}

  void include(double value) {
    least_ = std::min(least_, value);
    most_ = std::max(most_, value);
  }

  /// Called when all is included: leaves some room on both sides.
  void settle() {
    const double room = most_ > least_ ? 0.06 * (most_ - least_) : std::max(1.0, 0.1 * most_);
    least_ = std::max(0.0, least_ - room);
    most_ += room;
  }

  [[nodiscard]] double at(double value) const {
    return begin_ + (value - least_) / (most_ - least_) * (end_ - begin_);
  }
  [[nodiscard]] double begin() const { return begin_; }
  [[nodiscard]] double end() const { return end_; }

  [[nodiscard]] std::vector<double> marks() const {
    const double step = step_of(most_ - least_);
    std::vector<double> values;
    const double first = std::ceil(least_ / step);
    for (int k = 0; (first + k) * step <= most_; ++k) values.push_back((first + k) * step);
    return values;
  }

 private:
  double begin_;
  double end_;
  double least_ = std::numeric_limits<double>::infinity();
  double most_ = -std::numeric_limits<double>::infinity();
};

struct Room {
  double left;
  double top;
  double right;
  double bottom;

  [[nodiscard]] bool meets(const Room& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

Room around(double x, double y, double radius) {
  return {.left = x - radius, .top = y - radius, .right = x + radius, .bottom = y + radius};
}

// Keeps the best for each x: a point that another one beats in both is left out.
std::vector<Point> stairs_of(std::vector<Point> points) {
  std::sort(points.begin(), points.end(),
            [](const Point& a, const Point& b) { return a.x != b.x ? a.x < b.x : a.y < b.y; });
  std::vector<Point> stairs;
  for (const Point& point : points) {
    if (stairs.empty() || point.y < stairs.back().y) stairs.push_back(point);
  }
  return stairs;
}

/// The names of the points of one place.
struct Place {
  double x = 0;
  double y = 0;
  std::vector<std::string> names;
};

// The places of points from the left, each once.
std::vector<Place> together(std::vector<Point> points) {
  std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return a.x != b.x ? a.x < b.x : a.y < b.y;
  });
  std::vector<Place> places;
  for (const Point& point : points) {
    const bool same = !places.empty() && places.back().x == point.x && places.back().y == point.y;
    if (!same) places.push_back({.x = point.x, .y = point.y});
    auto& names = places.back().names;
    if (std::find(names.begin(), names.end(), point.name) == names.end()) {
      names.push_back(point.name);
    }
  }
  return places;
}

std::string listed(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

class TradeOffPanel {
 public:
  TradeOffPanel(const TradeOff& of, double top, Markup& out)
      : of_(of),
        out_(out),
        top_(top),
        x_(kLeft, kWidth - kRight),
        y_(top + kHeight - kBottom, top + kTop) {
    double most_x = 0;
    double most_y = 0;
    for (const TradeOff::Line& line : of.lines) {
      for (const auto* points : {&line.found, &line.bounds}) {
        for (const Point& point : *points) {
          include(point);
          most_x = std::max(most_x, kAcross * point.x);
          most_y = std::max(most_y, kAbove * point.y);
        }
      }
    }
    const bool any = empty_;
    std::vector<Point> near;
    for (const Point& point : of.others) {
      const bool is_near = any || (point.x <= most_x && point.y <= most_y);
      (is_near ? near : far_).push_back(point);
      if (is_near) include(point);
    }
    if (empty_) return;
    x_.settle();
    y_.settle();
    near_ = together(std::move(near));
  }

  void write() {
    out_.add("<text class=\"title\" x=\"", Length{kLeft}, "\" y=\"", Length{top_ + 22}, "\">",
             Escaped{of_.title}, "</text>\n");
    if (empty_) {
      out_.add("<text class=\"soft\" x=\"", Length{kLeft}, "\" y=\"", Length{top_ + 44},
               "\">There is nothing to draw.</text>\n");
      return;
    }
    write_axes();
    write_key();
    for (std::size_t i = 0; i < of_.lines.size(); ++i) write_line(i);
    write_others();
  }

 private:
  void include(const Point& point) {
    x_.include(point.x);
    y_.include(point.y);
    empty_ = false;
  }

  void write_axes() {
    for (const double value : x_.marks()) {
      const double at = x_.at(value);
      out_.add("<line class=\"grid\" x1=\"", Length{at}, "\" x2=\"", Length{at}, "\" y1=\"",
               Length{y_.begin()}, "\" y2=\"", Length{y_.end()}, "\"/>\n");
      write_text(at, y_.begin() + 15, "middle", figure(value));
    }
    for (const double value : y_.marks()) {
      const double at = y_.at(value);
      out_.add("<line class=\"grid\" x1=\"", Length{x_.begin()}, "\" x2=\"", Length{x_.end()},
               "\" y1=\"", Length{at}, "\" y2=\"", Length{at}, "\"/>\n");
      write_text(x_.begin() - 6, at + 4, "end", figure(value));
    }
    out_.add("<path class=\"axis\" fill=\"none\" d=\"M", Length{x_.begin()}, ' ', Length{y_.end()},
             "V", Length{y_.begin()}, "H", Length{x_.end()}, "\"/>\n");
    write_text((x_.begin() + x_.end()) / 2, y_.begin() + 36, "middle", of_.across);
    const double middle = (y_.begin() + y_.end()) / 2;
    out_.add("<text text-anchor=\"middle\" transform=\"translate(18 ", Length{middle},
             ") rotate(-90)\">", Escaped{of_.upwards}, "</text>\n");
  }

  void write_text(double x, double y, std::string_view anchor, std::string_view text) {
    out_.add("<text class=\"soft\" text-anchor=\"", anchor, "\" x=\"", Length{x}, "\" y=\"",
             Length{y}, "\">", Escaped{text}, "</text>\n");
  }

  void write_key() {
    double at = kLeft;
    const double y = top_ + 42;
    const auto add = [&](std::size_t ink, std::string_view kind, const std::string& words) {
      out_.add("<g class=\"ink", ink, "\"><path class=\"", kind, "\" d=\"M", Length{at}, ' ',
               Length{y - 4}, "h22\"/></g>");
      write_text(at + 27, y, "start", words);
      at += 27 + width_of(words) + 16;
    };
    bool any_bounds = false;
    for (std::size_t i = 0; i < of_.lines.size(); ++i) {
      add(i % kInks, "line", of_.lines[i].name);
      any_bounds = any_bounds || !of_.lines[i].bounds.empty();
    }
    if (any_bounds) add(0, "bound", "none of that placement is below");
  }

  [[nodiscard]] static double width_of(std::string_view text) {
    return 0.54 * kPrint * static_cast<double>(text.size());
  }

  void write_line(std::size_t number) {
    const TradeOff::Line& line = of_.lines[number];
    out_.add("<g class=\"ink", number % kInks, "\">\n");
    const std::vector<Point> found = stairs_of(line.found);
    if (!found.empty()) {
      out_.add("<path class=\"line\" d=\"M", Length{x_.at(found.front().x)}, ' ',
               Length{y_.at(found.front().y)});
      for (const Point& point : found) {
        out_.add("H", Length{x_.at(point.x)}, "V", Length{y_.at(point.y)});
      }
      out_.add("H", Length{x_.end()}, "\"/>\n");
    }
    write_bounds(line.bounds);
    for (const Point& point : line.found) {
      const double x = x_.at(point.x);
      const double y = y_.at(point.y);
      taken_.push_back(around(x, y, 4));
      out_.add("<circle class=\"found\" cx=\"", Length{x}, "\" cy=\"", Length{y},
               "\" r=\"3.5\"><title>", Escaped{point.name}, "</title></circle>\n");
    }
    out_.add("</g>\n");
  }

  // Between two limits the bound of the higher one is what is known.
  void write_bounds(std::vector<Point> bounds) {
    if (bounds.empty()) return;
    std::sort(bounds.begin(), bounds.end(),
              [](const Point& a, const Point& b) { return a.x < b.x; });
    out_.add("<path class=\"bound\" d=\"M", Length{x_.begin()}, ' ',
             Length{y_.at(bounds.front().y)});
    for (const Point& point : bounds) {
      out_.add("V", Length{y_.at(point.y)}, "H", Length{x_.at(point.x)});
    }
    out_.add("\"/>\n");
  }

  void write_others() {
    write_ways();
    for (const Place& place : near_) {
      const double x = x_.at(place.x);
      const double y = y_.at(place.y);
      taken_.push_back(around(x, y, 4.5));
      out_.add("<circle class=\"other\" cx=\"", Length{x}, "\" cy=\"", Length{y},
               "\" r=\"4\"><title>", Escaped{listed(place.names)}, ": ", Escaped{figure(place.y)},
               " with ", Escaped{figure(place.x)}, "</title></circle>\n");
    }
    std::set<std::string> named;
    for (const Place& place : near_) {
      std::vector<std::string> first;
      for (const std::string& name : place.names) {
        if (named.insert(name).second) first.push_back(name);
      }
      if (!first.empty()) write_name({.x = place.x, .y = place.y, .name = listed(first)});
    }
    write_far();
  }

  // A thin line through all points of one name.
  void write_ways() {
    std::map<std::string, std::vector<const Place*>> by_name;
    for (const Place& place : near_) {
      for (const std::string& name : place.names) by_name[name].push_back(&place);
    }
    for (const auto& [name, places] : by_name) {
      if (places.size() < 2) continue;
      out_.add("<path class=\"way\" d=\"");
      for (const Place* place : places) {
        out_.add(place == places.front() ? 'M' : 'L', Length{x_.at(place->x)}, ' ',
                 Length{y_.at(place->y)});
      }
      out_.add("\"/>\n");
    }
  }

  void write_far() {
    const std::vector<Place> far = together(far_);
    if (far.empty()) return;
    std::string words = "farther off: ";
    for (std::size_t i = 0; i < std::min(far.size(), kMostFar); ++i) {
      words += fmt::format("{}{} {} with {}", i == 0 ? "" : ", ", listed(far[i].names),
                           figure(far[i].y), figure(far[i].x));
    }
    if (far.size() > kMostFar) words += fmt::format(", and {} more", far.size() - kMostFar);
    write_text(kLeft, y_.begin() + 54, "start", words);
  }

  void write_name(const Point& point) {
    const double width = width_of(point.name);
    const double x = x_.at(point.x);
    const double y = y_.at(point.y);
    for (int line = 0; line < 16; ++line) {
      const double away = line * (kPrint + 1);
      for (const double side : {1.0, -1.0}) {
        for (const double drop : {away, -away}) {
          const double left = side > 0 ? x + 8 : x - 8 - width;
          const Room box{.left = left,
                         .top = y + drop - kPrint / 2,
                         .right = left + width,
                         .bottom = y + drop + kPrint / 2};
          const bool inside = box.left >= x_.begin() && box.right <= kWidth - 2 &&
                              box.top >= y_.end() - 6 && box.bottom <= y_.begin() - 1;
          const bool free = std::none_of(taken_.begin(), taken_.end(),
                                         [&](const Room& other) { return box.meets(other); });
          if (!inside || !free) continue;
          taken_.push_back(box);
          if (away > 0) {
            out_.add("<line class=\"way\" x1=\"", Length{x}, "\" y1=\"", Length{y}, "\" x2=\"",
                     Length{side > 0 ? box.left - 1 : box.right + 1}, "\" y2=\"", Length{y + drop},
                     "\"/>");
          }
          out_.add("<text class=\"name\" x=\"", Length{left}, "\" y=\"", Length{y + drop + 4},
                   "\">", Escaped{point.name}, "</text>\n");
          return;
        }
      }
    }
  }

  const TradeOff& of_;
  Markup& out_;
  double top_;
  Scale x_;
  Scale y_;
  std::vector<Place> near_;  // what is drawn
  std::vector<Point> far_;   // and what is only named
  std::vector<Room> taken_;  // by points and names
  bool empty_ = true;
};

}  // namespace

std::string trade_off_svg(const std::vector<TradeOff>& pictures) {
  Markup out;
  const double height = kHeight * static_cast<double>(std::max<std::size_t>(1, pictures.size()));
  out.add("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", Length{kWidth}, ' ',
          Length{height}, "\" width=\"", Length{kWidth}, "\" height=\"", Length{height},
          "\">\n<style>", kStyle, "</style>\n<rect class=\"page\" width=\"100%\" ",
          "height=\"100%\"/>\n");
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    TradeOffPanel(pictures[i], kHeight * static_cast<double>(i), out).write();
  }
  out.add("</svg>\n");
  return out.take();
}

}  // namespace capo
