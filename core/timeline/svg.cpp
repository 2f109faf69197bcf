#include "core/timeline/marks.h"
#include "core/timeline/picture.h"

#include "core/base/index.h"
#include "core/text/printable.h"
#include "core/timeline/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <string_view>
#include <tuple>
#include <utility>

namespace capo {

namespace {

constexpr std::size_t kNoRow = std::numeric_limits<std::size_t>::max();

// Lengths in points of the page. A column of a paper is 85 mm wide.
struct Measures {
  double print = 11;      // the size of ordinary text
  double small = 9;       // of the names of lanes, and of bars that are low
  double computing = 22;  // the height of a lane of computations
  double moving = 13;     // of a lane of transfers or collectives
  double memory = 20;     // of the curve of memory
  double gap = 8;         // between ranks
  double names = 118;     // the width of the names at the left
  double margin = 10;
  double fixed_width = 0;  // of the page; 0: as wide as its tasks need
};

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
          .fixed_width = 321};
}

constexpr std::string_view kScreenStyle = R"(
svg{font-family:Helvetica,Arial,sans-serif}
.page{fill:#ffffff}.band{fill:#f3f4f6}text{fill:#16181d}.soft{fill:#5b6270}
.F rect,.B rect,.W rect,.transfer rect,.collective rect{stroke-width:.6}
.hatch{stroke:#a9afbb;stroke-width:1}.grid{stroke:#d7dae0;stroke-width:.5}
.held{fill:#c9ced8;stroke:#5b6270;stroke-width:.7}
.path{fill:none;stroke:#16181d;stroke-width:1.1}.head{fill:#16181d}
.alarm{fill:none;stroke:#d1002c;stroke-width:2}.alarm-head{fill:#d1002c}
.alarm-words{fill:#b30025;font-weight:bold;paint-order:stroke;stroke:#ffffff;stroke-width:3px}
.finding,.rejected text{fill:#b30025}.accepted text{fill:#0b5a3e}
@media (prefers-color-scheme:dark){
.page{fill:#14171c}.band{fill:#1d2229}text{fill:#eceef2}.soft{fill:#a2abba}
.hatch{stroke:#59616e}.grid{stroke:#343b46}.held{fill:#3a414d;stroke:#a2abba}
.path{stroke:#eceef2}.head{fill:#eceef2}.alarm{stroke:#ff6b81}.alarm-head{fill:#ff6b81}
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
.path{fill:none;stroke:#000000;stroke-width:.6}.head{fill:#000000}
.alarm{fill:none;stroke:#000000;stroke-width:1.2;stroke-dasharray:3 1.5}.alarm-head{fill:#000000}
.alarm-words{fill:#000000;font-weight:bold;paint-order:stroke;stroke:#ffffff;stroke-width:2px}
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

// The number of bytes that fit into a width: letters are about half as wide as high.
std::size_t fitting(double width, double print) {
  return as_index(std::max<std::int64_t>(0, std::llround(std::floor(width / (0.56 * print)))));
}

// The width of a label of letters and digits.
double width_in(const std::string& label, double print) {
  double width = 0;
  for (const char c : label) width += c == 'W' ? 0.95 : c == '.' ? 0.28 : c >= 'A' ? 0.67 : 0.56;
  return width * print;
}

std::vector<std::string> wrapped(const std::string& text, std::size_t most) {
  std::vector<std::string> lines(1);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > most) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
    at = end + 1;
  }
  return lines;
}

std::string_view class_of(Kind kind) {
  if (kind == Kind::Forward) return "task F";
  if (kind == Kind::BackwardWeight) return "task W";
  if (is_compute(kind)) return "task B";
  if (is_send(kind)) return "transfer send";
  if (is_receive(kind)) return "transfer receive";
  if (is_send_wait(kind)) return "transfer wait";
  if (kind == Kind::DispatchForward || kind == Kind::DispatchBackward) return "collective dispatch";
  return is_exchange(kind) ? "collective combine" : "collective";
}

// The tasks of one action: its parts, if its layers are taken apart.
struct Bars {
  std::size_t first = 0;
  std::size_t last = 0;  // one past the end, in the order of Drawing::sorted_
};

struct Row {
  std::int32_t rank = 0;
  std::string name;
  double top = 0;
  double height = 0;
};

struct Point {
  double x = 0;
  double y = 0;
};

// Words that stand in the picture, around their middle.
struct Words {
  Point at;
  double half = 0;  // of their width
};

// The axis of time that the pictures of a page share.
struct Axis {
  double left = 0;
  double width = 0;  // of the page
  double per_time = 0;
  double span = 0;  // the time at its end
};

// The time that most computations take, which gets room for a label.
double usual_duration(const Timeline& timeline) {
  std::vector<double> durations;
  for (const TimedTask& task : timeline.tasks) {
    if (is_compute(task.kind) && task.end > task.begin) durations.push_back(task.end - task.begin);
  }
  if (durations.empty()) return timeline.makespan;
  const auto middle = durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 2);
  std::nth_element(durations.begin(), middle, durations.end());
  return *middle;
}

Axis axis_of(const std::vector<const Picture*>& pictures, Page page) {
  const Measures measures = measures_of(page);
  Axis axis{.left = measures.margin + measures.names};
  double wide = 640;
  for (const Picture* picture : pictures) {
    const Timeline& timeline = picture->timeline;
    const double usual = usual_duration(timeline);
    const double length = timeline.one_chunk ? 28 : 33;  // of a usual bar
    axis.span = std::max(axis.span, timeline.makespan);
    if (usual > 0) wide = std::max(wide, length * timeline.makespan / usual);
  }
  wide = std::min(wide, 4800.0);
  if (measures.fixed_width > 0) wide = measures.fixed_width - axis.left - measures.margin;
  axis.width = axis.left + wide + measures.margin;
  axis.per_time = axis.span > 0 ? wide / axis.span : 0;
  return axis;
}

class Drawing {
 public:
  Drawing(const Picture& picture, const SvgOptions& options, const Axis& axis, double top)
      : picture_(picture),
        timeline_(picture.timeline),
        options_(options),
        measures_(measures_of(options.page)),
        axis_(axis),
        top_(top),
        left_(axis.left),
        width_(axis.width),
        per_time_(axis.per_time) {
    if (has_arrows()) measures_.gap += 3.2 * measures_.small;
    sort_actions();
    place_rows();
  }

  /// Adds the picture to a text, with the keys of its kinds if it is the last on the page. Returns
  /// where it ends.
  double draw(std::string& text, bool with_legend) {
    write_header();
    write_bands();
    write_bubbles();
    write_memory();
    write_actions();
    write_axis();
    write_path();
    write_alarms();
    double below = bottom_ + 2.6 * measures_.print;
    if (with_legend) below = write_legend(below);
    below = write_findings(below);
    text.append(body_.data(), body_.size());
    return below;
  }

 private:
  template <typename... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(fmt::appender(body_), format, std::forward<Values>(values)...);
  }

  [[nodiscard]] std::int32_t rank_of(const TimedTask& task) const {
    return timeline_.lanes[task.lane].rank;
  }

  // --- layout -----------------------------------------------------------------------------------

  // An action's parts stand side by side in sorted_, so that one group holds them.
  void sort_actions() {
    sorted_.resize(timeline_.tasks.size());
    for (std::uint32_t at = 0; at < sorted_.size(); ++at) sorted_[at] = at;
    const auto key = [&](std::uint32_t at) {
      const TimedTask& task = timeline_.tasks[at];
      return std::tuple(rank_of(task), is_compute(task.kind) ? task.entry : kNoPosition, task.kind);
    };
    std::stable_sort(sorted_.begin(), sorted_.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
    for (std::size_t at = 0; at < sorted_.size(); ++at) {
      const auto [rank, entry, kind] = key(sorted_[at]);
      const bool goes_on =
          at > 0 && entry != kNoPosition && key(sorted_[at]) == key(sorted_[at - 1]);
      if (!goes_on) actions_.push_back({.first = at, .last = at});
      actions_.back().last = at + 1;
    }
  }

  void place_rows() {
    const std::vector<bool> used = lanes_used();
    std::vector<std::vector<std::uint32_t>> lanes_of(timeline_.ranks);
    for (std::uint32_t lane = 0; lane < timeline_.lanes.size(); ++lane) {
      if (used[lane]) lanes_of[RankId(timeline_.lanes[lane].rank).index()].push_back(lane);
    }
    row_of_.assign(timeline_.lanes.size(), kNoRow);
    double y = header_height();
    for (std::size_t rank = 0; rank < timeline_.ranks; ++rank) {
      band_of_.push_back(y);
      for (const std::uint32_t lane : lanes_of[rank]) {
        row_of_[lane] = rows_.size();
        const bool alone = options_.page == Page::Column && lanes_of[rank].size() == 1;
        y = add_row(rank, alone ? "" : timeline_.lanes[lane].name, height_of(lane), y);
      }
      if (lanes_of[rank].empty()) y = add_row(rank, "idle", measures_.computing, y);
      if (has_memory(rank)) y += measures_.memory + 2;
      y += measures_.gap;
    }
    bottom_ = y;
  }

  double add_row(std::size_t rank, const std::string& name, double height, double y) {
    rows_.push_back(
        {.rank = static_cast<std::int32_t>(rank), .name = name, .top = y, .height = height});
    return y + height + 2;
  }

  [[nodiscard]] std::vector<bool> lanes_used() const {
    std::vector<bool> used(timeline_.lanes.size(), false);
    for (const TimedTask& task : timeline_.tasks) used[task.lane] = true;
    for (const Alarm& alarm : picture_.alarms) {
      for (const Spot& spot : alarm.places) used[spot.lane] = true;
    }
    return used;
  }

  [[nodiscard]] double height_of(std::uint32_t lane) const {
    const std::string& name = timeline_.lanes[lane].name;
    const bool computes = name == "compute" || name == "wgrad" || name == "order";
    return computes ? measures_.computing : measures_.moving;
  }

  // Whether there are red arrows, whose words want room between ranks.
  [[nodiscard]] bool has_arrows() const {
    return std::any_of(picture_.alarms.begin(), picture_.alarms.end(),
                       [](const Alarm& alarm) { return !alarm.arrows.empty(); });
  }

  [[nodiscard]] bool has_memory(std::size_t rank) const {
    return rank < timeline_.memory.size() && !timeline_.memory[rank].empty();
  }

  [[nodiscard]] std::size_t header_lines() const {
    return options_.page == Page::Column ? 1 : 2 + setting_lines().size();
  }
  [[nodiscard]] std::vector<std::string> setting_lines() const {
    std::vector<std::string> lines;
    for (const std::string& fact : picture_.setting) {
      for (std::string& line : wrapped(fact, text_columns())) lines.push_back(std::move(line));
    }
    return lines;
  }
  [[nodiscard]] double heading_end() const {
    return top_ + measures_.margin + 1.35 * measures_.print * static_cast<double>(header_lines());
  }
  // The height at which the rows begin.
  [[nodiscard]] double header_height() const {
    return heading_end() + (has_arrows() ? 3.2 * measures_.small : 0) + measures_.gap;
  }
  [[nodiscard]] std::size_t text_columns() const {
    return std::max<std::size_t>(20, fitting(width_ - 2 * measures_.margin, measures_.print));
  }

  [[nodiscard]] double x_of(double time) const { return left_ + time * per_time_; }
  // A task without a length is drawn as a line, so that it is seen.
  [[nodiscard]] double width_of(double begin, double end) const {
    return std::max(0.8, (end - begin) * per_time_);
  }

  // --- text -------------------------------------------------------------------------------------

  [[nodiscard]] std::string time_words(double time) const {
    if (timeline_.origin == Timeline::Origin::Listed) return figure(time);
    return timeline_.unit == Timeline::Unit::Microseconds ? figure(time) + " us" : figure(time);
  }

  // "F1.3", or "F3" where no rank holds several chunks.
  [[nodiscard]] std::string label_of(const TimedTask& task) const {
    std::string label(letter_of(task.kind));
    if (!timeline_.one_chunk && task.chunk > 0) label += fmt::format("{}.", task.chunk);
    if (task.microbatch != kNoMicrobatch) label += fmt::format("{}", task.microbatch);
    return label;
  }

  // The longest form of a label that a bar has room for, and that still says something.
  [[nodiscard]] std::string fitted(const TimedTask& task, double width, double print) const {
    const auto fits = [&](const std::string& label) { return width_in(label, print) < width - 1; };
    const std::string label = label_of(task);
    if (fits(label)) return label;
    if (task.microbatch == kNoMicrobatch) return "";
    std::string short_label = fmt::format("{}{}", letter_of(task.kind), task.microbatch);
    if (fits(short_label)) return short_label;
    short_label.erase(0, 1);
    return fits(short_label) ? short_label : "";
  }

  void write_text(Point at, double print, std::string_view more, std::string_view text) {
    add("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\"{}>{}</text>\n", at.x, at.y, print, more,
        escaped(text));
  }

  // --- parts of the page ------------------------------------------------------------------------

  void write_header() {
    const double line = 1.35 * measures_.print;
    double y = top_ + measures_.margin + measures_.print;
    const bool column = options_.page == Page::Column;
    if (!column)
      write_text({measures_.margin, y}, 1.15 * measures_.print, " font-weight=\"bold\"",
                 picture_.title);
    if (!column) y += line;
    add("<g class=\"{}\"><text class=\"verdict\" x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\" "
        "font-weight=\"bold\">{}</text></g>\n",
        picture_.accepted ? "accepted" : "rejected", measures_.margin, y, measures_.print,
        escaped(picture_.verdict));
    if (column) return;
    for (const std::string& text : setting_lines()) {
      y += line;
      write_text({measures_.margin, y}, measures_.print, " class=\"soft\"", text);
    }
  }

  void write_bands() {
    for (std::size_t rank = 0; rank < band_of_.size(); ++rank) {
      const double end = rank + 1 < band_of_.size() ? band_of_[rank + 1] : bottom_;
      const double height = end - band_of_[rank] - measures_.gap + 2;
      if (options_.page == Page::Screen) {
        add("<rect class=\"band\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n",
            left_, band_of_[rank] - 2, width_ - left_ - measures_.margin, height);
      }
      write_text({measures_.margin, band_of_[rank] + 1.1 * measures_.print}, measures_.print,
                 " font-weight=\"bold\"", fmt::format("rank {}", rank));
    }
    for (const Row& row : rows_) {
      const double baseline = row.top + row.height / 2 + 0.35 * measures_.small;
      write_text({left_ - 4, baseline}, measures_.small, " class=\"soft\" text-anchor=\"end\"",
                 row.name);
    }
  }

  [[nodiscard]] const Row* computing_row(std::int32_t rank) const {
    const auto row = std::find_if(rows_.begin(), rows_.end(),
                                  [&](const Row& each) { return each.rank == rank; });
    return row == rows_.end() ? nullptr : &*row;
  }

  void write_bubbles() {
    const Row* row = nullptr;
    for (const Bubble& bubble : timeline_.bubbles) {
      if (row == nullptr || row->rank != bubble.rank) row = computing_row(bubble.rank);
      if (row == nullptr || bubble.end <= bubble.begin) continue;
      add("<rect class=\"bubble\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" "
          "fill=\"url(#idle)\"><title>{}</title></rect>\n",
          x_of(bubble.begin), row->top, (bubble.end - bubble.begin) * per_time_, row->height,
          escaped(fmt::format("idle from {} to {}: {}", time_words(bubble.begin),
                              time_words(bubble.end), bubble.why)));
    }
  }

  void write_memory() {
    double most = 0;
    for (const auto& rank : timeline_.memory) {
      for (const HeldMemory& moment : rank) most = std::max(most, moment.held);
    }
    if (most <= 0) return;
    for (std::size_t rank = 0; rank < timeline_.ranks; ++rank) {
      if (has_memory(rank)) write_memory_of(rank, most);
    }
  }

  void write_memory_of(std::size_t rank, double most) {
    const double end = rank + 1 < band_of_.size() ? band_of_[rank + 1] : bottom_;
    const double base = end - measures_.gap - 1;
    double peak = 0;
    std::string line = fmt::format("M{:.2f} {:.2f}", x_of(0), base);
    const auto& course = timeline_.memory[rank];
    for (std::size_t at = 0; at < course.size(); ++at) {
      const HeldMemory& moment = course[at];
      // A task that ends makes room for one that begins at the same moment.
      if (at + 1 < course.size() && course[at + 1].time <= moment.time) continue;
      peak = std::max(peak, moment.held);
      fmt::format_to(std::back_inserter(line), "H{:.2f}V{:.2f}", x_of(moment.time),
                     base - measures_.memory * std::max(0.0, moment.held) / most);
    }
    add("<path class=\"held\" d=\"{}H{:.2f}V{:.2f}z\"><title>memory of rank {}: at most {}"
        "</title></path>\n",
        line, x_of(timeline_.makespan), base, rank, figure(peak));
    write_text({left_ - 4, base - 0.2 * measures_.small}, measures_.small,
               " class=\"soft\" text-anchor=\"end\"", fmt::format("memory, peak {}", figure(peak)));
  }

  void write_actions() {
    for (const Bars& action : actions_) write_action(action);
  }

  void write_action(const Bars& action) {
    const TimedTask& first = timeline_.tasks[sorted_[action.first]];
    double begin = first.begin;
    double end = first.end;
    for (std::size_t at = action.first; at < action.last; ++at) {
      begin = std::min(begin, timeline_.tasks[sorted_[at]].begin);
      end = std::max(end, timeline_.tasks[sorted_[at]].end);
    }
    add("<g class=\"{}\" data-rank=\"{}\" data-chunk=\"{}\" data-microbatch=\"{}\" "
        "data-start=\"{}\" data-end=\"{}\"><title>{}</title>",
        class_of(first.kind), rank_of(first), first.chunk, first.microbatch, begin, end,
        escaped(words_of(first, begin, end)));
    for (std::size_t at = action.first; at < action.last; ++at)
      write_bar(timeline_.tasks[sorted_[at]]);
    add("</g>\n");
  }

  [[nodiscard]] std::string words_of(const TimedTask& task, double begin, double end) const {
    const std::string name = fmt::format("{} of rank {}", timeline_.label(task.id), rank_of(task));
    if (timeline_.origin == Timeline::Origin::Listed) {
      return fmt::format("{}, at index {} of its order", name, figure(begin));
    }
    return fmt::format("{}: from {} to {}, {} long", name, time_words(begin), time_words(end),
                       time_words(end - begin));
  }

  // The members of a composite lie one above the other, since they run together.
  void write_bar(const TimedTask& task) {
    const Row& row = rows_[row_of_[task.lane]];
    const double height = row.height / task.members;
    const double y = row.top + height * task.member;
    const double x = x_of(task.begin);
    const double width = width_of(task.begin, task.end);
    add("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"{}/>", x, y, width,
        height, shade_of(task));
    const double print = std::min(measures_.print, 0.72 * height);
    const std::string text = fitted(task, width, print);
    if (text.empty()) return;
    add("<text x=\"{:.2f}\" y=\"{:.2f}\" font-size=\"{:.1f}\" text-anchor=\"middle\">{}</text>",
        x + width / 2, y + height / 2 + 0.35 * print, print, text);
  }

  // Later chunks are paler, as papers have it, but for dark bars with white letters.
  [[nodiscard]] std::string_view shade_of(const TimedTask& task) const {
    constexpr std::array<std::string_view, 4> kShades{
        "", " fill-opacity=\".62\"", " fill-opacity=\".4\"", " fill-opacity=\".25\""};
    const bool dark = options_.page == Page::Column && task.kind == Kind::BackwardWeight;
    if (!is_compute(task.kind) || task.chunk < 1 || dark) return "";
    return kShades[std::min(kShades.size() - 1, ChunkId(task.chunk).index())];
  }

  // A step of 1, 2 or 5 times a power of ten that leaves room for figures.
  [[nodiscard]] double tick() const {
    const double least = (options_.page == Page::Column ? 36 : 64) / per_time_;
    const double power = std::pow(10, std::floor(std::log10(least)));
    for (const double times : {1.0, 2.0, 5.0}) {
      if (times * power >= least) return times * power;
    }
    return 10 * power;
  }

  void write_axis() {
    const bool listed = timeline_.origin == Timeline::Origin::Listed;
    const double y = bottom_ + measures_.print;
    const std::string_view name = listed ? "place in the order"
                                  : timeline_.unit == Timeline::Unit::Microseconds
                                      ? "microseconds"
                                      : "units of cost";
    write_text({left_ - measures_.print, y}, measures_.small, " class=\"soft\" text-anchor=\"end\"",
               name);
    if (per_time_ <= 0) return;
    const double step = listed ? std::max(1.0, tick()) : tick();
    for (double count = 0; count * step <= axis_.span * (1 + 1e-12); ++count) {
      const double x = x_of(count * step);
      add("<line class=\"grid\" x1=\"{0:.2f}\" x2=\"{0:.2f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>", x,
          header_height() - 2, bottom_);
      write_text({x, y}, measures_.small, " class=\"soft\" text-anchor=\"middle\"",
                 figure(count * step));
    }
  }

  // --- arrows -----------------------------------------------------------------------------------

  [[nodiscard]] const Row& row_at(const Spot& spot) const { return rows_[row_of_[spot.lane]]; }
  [[nodiscard]] Point middle_of(const Spot& spot) const {
    const Row& row = row_at(spot);
    return {x_of((spot.begin + spot.end) / 2), row.top + row.height / 2};
  }
  // The middle of the edge of one end that looks to the other. In one row an arrow to the right
  // goes over the bars, and one to the left below them.
  [[nodiscard]] Point edge_of(const AlarmArrow& arrow, const Spot& spot, const Spot& other) const {
    const bool lower = arrow.from.begin > arrow.to.begin;
    const double way = row_at(other).top - row_at(spot).top;
    const bool down = way > 0 || (way == 0 && lower);
    Point edge = middle_of(spot);
    edge.y += (down ? 0.5 : -0.5) * row_at(spot).height;
    return edge;
  }
  [[nodiscard]] static Spot spot_of(const TimedTask& task) {
    return {.lane = task.lane, .begin = task.begin, .end = task.end};
  }

  // Between tasks of one lane that follow each other the path needs no arrow.
  void write_path() {
    if (!options_.path) return;
    for (std::size_t at = 1; at < timeline_.path.size(); ++at) {
      const Spot from = spot_of(timeline_.tasks[timeline_.path[at - 1]]);
      const Spot to = spot_of(timeline_.tasks[timeline_.path[at]]);
      if (from.lane == to.lane) continue;
      const double down = row_at(to).top > row_at(from).top ? 1 : 0;
      add("<path class=\"path\" d=\"M{:.2f} {:.2f}L{:.2f} {:.2f}\" marker-end=\"url(#head)\"/>\n",
          x_of(from.end) - 1, row_at(from).top + down * row_at(from).height, x_of(to.begin) + 1,
          row_at(to).top + (1 - down) * row_at(to).height);
    }
  }

  void write_alarms() {
    for (const Alarm& alarm : picture_.alarms) {
      for (const Spot& spot : alarm.places) write_mark(spot, alarm);
    }
    for (const Alarm& alarm : picture_.alarms) {
      for (const AlarmArrow& arrow : alarm.arrows) write_arrow(arrow, alarm);
    }
  }

  void write_mark(const Spot& spot, const Alarm& alarm) {
    const Row& row = row_at(spot);
    const double x = x_of(spot.begin);
    add("<g><title>{}</title><rect class=\"alarm\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" "
        "height=\"{:.2f}\" rx=\"2\"/>",
        escaped(alarm.words), x - 1, row.top - 1, width_of(spot.begin, spot.end) + 2,
        row.height + 2);
    if (alarm.arrows.empty()) {
      add("<text class=\"alarm-words\" x=\"{:.2f}\" y=\"{:.2f}\" font-size=\"{}\">{}</text>", x,
          row.top - 2, measures_.small, alarm.rule);
    }
    add("</g>\n");
  }

  // An arrow bends to its own left, so that two that go to and fro lie apart.
  void write_arrow(const AlarmArrow& arrow, const Alarm& alarm) {
    const Point a = edge_of(arrow, arrow.from, arrow.to);
    const Point b = edge_of(arrow, arrow.to, arrow.from);
    const double along = std::max(1.0, std::hypot(b.x - a.x, b.y - a.y));
    const double out = std::clamp(0.22 * along, 12.0, 60.0) / along;
    const Point by{(a.x + b.x) / 2 + out * (b.y - a.y), (a.y + b.y) / 2 - out * (b.x - a.x)};
    add("<g><title>{}</title><path class=\"alarm\" d=\"M{:.2f} {:.2f}Q{:.2f} {:.2f} {:.2f} "
        "{:.2f}\" "
        "marker-end=\"url(#alarm-head)\"/>",
        escaped(alarm.words), a.x, a.y, by.x, by.y, b.x, b.y);
    const std::string words = fmt::format("{} {}", alarm.rule, printable(arrow.words, 60));
    const Point at = free_place({(a.x + b.x) / 4 + by.x / 2, (a.y + b.y) / 4 + by.y / 2}, words);
    add("<text class=\"alarm-words\" x=\"{:.2f}\" y=\"{:.2f}\" font-size=\"{}\" "
        "text-anchor=\"middle\">{}</text></g>\n",
        at.x, at.y, measures_.small, escaped(words));
  }

  // Whether words on this line would lie on bars or on the heading.
  [[nodiscard]] bool on_row(double y) const {
    const auto behind = std::upper_bound(
        rows_.begin(), rows_.end(), y, [](double line, const Row& row) { return line < row.top; });
    if (behind == rows_.begin()) return y < heading_end() + measures_.small;
    return y < std::prev(behind)->top + std::prev(behind)->height + 0.8 * measures_.small;
  }

  // The place nearest to the wanted one at which words neither leave the page nor lie on others.
  Point free_place(Point wanted, const std::string& words) {
    const double half = 0.28 * measures_.small * static_cast<double>(words.size());
    wanted.x = std::clamp(wanted.x, std::min(half + 2, width_ / 2),
                          std::max(width_ - half - 2, width_ / 2));
    const double line = 1.15 * measures_.small;
    Point best = wanted;
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

  // --- below the picture ------------------------------------------------------------------------

  [[nodiscard]] bool has(bool (*wanted)(Kind)) const {
    return std::any_of(timeline_.tasks.begin(), timeline_.tasks.end(),
                       [&](const TimedTask& task) { return wanted(task.kind); });
  }

  double write_legend(double y) {
    double x = measures_.margin;
    const double size = measures_.print;
    const auto key = [&](const std::string& swatch, const std::string& words) {
      const double wide = 2.6 * size + 0.52 * size * static_cast<double>(words.size());
      if (x > measures_.margin && x + wide > width_) {
        x = measures_.margin;
        y += 1.6 * size;
      }
      add("<rect {} x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>", swatch, x,
          y - 0.85 * size, 1.5 * size, size);
      write_text({x + 1.9 * size, y}, size, "", words);
      x += wide + 0.6 * size;
    };
    if (has([](Kind kind) { return kind == Kind::Forward; })) key("class=\"key-F\"", "F forward");
    if (has([](Kind kind) { return kind == Kind::Backward || kind == Kind::BackwardInput; })) {
      key("class=\"key-B\"", "B backward");
    }
    if (has([](Kind kind) { return kind == Kind::BackwardWeight; })) {
      key("class=\"key-W\"", "W weight gradient");
    }
    if (has(is_transfer)) key("class=\"key-transfer\"", "s send, r receive");
    if (has([](Kind kind) { return is_exchange(kind) || kind >= Kind::Unshard; })) {
      key("class=\"key-collective\"", "d dispatch, c combine, other collectives");
    }
    if (has([](Kind kind) { return letter_of(kind) == "t"; }))
      key("class=\"key-transfer\"", "t wait");
    if (!timeline_.bubbles.empty()) key("fill=\"url(#idle)\"", "idle");
    if (!timeline_.memory.empty()) key("class=\"held\"", "memory held");
    if (options_.path && !timeline_.path.empty())
      key(fmt::format("class=\"path\" stroke-dasharray=\"{} 999\"", 1.5 * size), "critical path");
    if (!picture_.alarms.empty()) key("class=\"alarm\"", "finding");
    return y + 1.8 * size;
  }

  double write_findings(double y) {
    const double size = measures_.print;
    for (const Alarm& alarm : picture_.alarms) {
      for (const std::string& line : wrapped(printable(alarm.words), text_columns())) {
        write_text({measures_.margin, y}, size, " class=\"finding\"", line);
        y += 1.35 * size;
      }
    }
    return y + measures_.margin - size;
  }

  const Picture& picture_;
  const Timeline& timeline_;
  SvgOptions options_;
  Measures measures_;
  const Axis& axis_;
  double top_ = 0;
  std::vector<std::uint32_t> sorted_;  // positions of Timeline::tasks
  std::vector<Bars> actions_;
  std::vector<Row> rows_;
  std::vector<std::size_t> row_of_;  // by lane; kNoRow: nothing is drawn on it
  std::vector<double> band_of_;      // by rank: its upper end
  double left_ = 0;
  double width_ = 0;
  double per_time_ = 0;
  double bottom_ = 0;
  std::vector<Words> words_;  // of arrows
  fmt::memory_buffer body_;
};

void add_definitions(Page page, std::string& text) {
  const double step = page == Page::Column ? 2.5 : 5;
  text += fmt::format(
      "<defs><pattern id=\"idle\" width=\"{0}\" height=\"{0}\" patternUnits=\"userSpaceOnUse\" "
      "patternTransform=\"rotate(45)\"><line class=\"hatch\" y2=\"{0}\"/></pattern>\n",
      step);
  for (const std::string_view name : {"head", "alarm-head"}) {
    text += fmt::format(
        "<marker id=\"{0}\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"{1}\" "
        "markerHeight=\"{1}\" orient=\"auto\"><path class=\"{0}\" d=\"M0 0L8 4L0 8z\"/></marker>\n",
        name, name == "head" ? 5 : 4.5);
  }
  text += "</defs>\n";
}

std::string head(const std::vector<const Picture*>& pictures, Page page, const Axis& axis,
                 double height) {
  const bool column = page == Page::Column;
  std::string text = fmt::format(
      "<svg xmlns=\"{}\" viewBox=\"0 0 {:.0f} {:.0f}\" width=\"{}\" height=\"{:.1f}{}\">\n",
      kNamespace, axis.width, height, column ? "85mm" : fmt::format("{:.0f}", axis.width),
      column ? height * 85 / axis.width : height, column ? "mm" : "");
  text += "<title>";
  for (const Picture* picture : pictures) {
    text += fmt::format("{}{}: {}", picture == pictures.front() ? "" : " | ",
                        escaped(picture->title), escaped(picture->verdict));
  }
  text += fmt::format("</title>\n<style>{}</style>\n",
                      column ? std::string(kColumnStyle) : screen_style());
  add_definitions(page, text);
  return text + "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n";
}

// One picture below the other on one axis.
std::string svg_of(const std::vector<const Picture*>& pictures, const SvgOptions& options) {
  const Axis axis = axis_of(pictures, options.page);
  std::string body;
  double below = 0;
  for (const Picture* picture : pictures) {
    below = Drawing(*picture, options, axis, below).draw(body, picture == pictures.back());
  }
  std::string text = head(pictures, options.page, axis, below);
  text.reserve(text.size() + body.size() + 8);
  return text.append(body).append("</svg>\n");
}

}  // namespace

std::string svg(const Picture& picture, const SvgOptions& options) {
  return svg_of({&picture}, options);
}

std::string svg(const std::vector<Picture>& pictures, const SvgOptions& options) {
  std::vector<const Picture*> all;
  for (const Picture& picture : pictures) all.push_back(&picture);
  return svg_of(all, options);
}

}  // namespace capo
