#include "core/base/index.h"
#include "core/timeline/marks.h"
#include "core/timeline/svg_parts.h"
#include "core/timeline/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

namespace capo {

namespace {

// A time in words; times of orders that are only listed are places.
std::string time_words(const Timeline& timeline, double time) {
  const bool measured =
      timeline.origin != Timeline::Origin::Listed && timeline.unit == Timeline::Unit::Microseconds;
  return measured ? figure(time) + " us" : figure(time);
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

// The width of a label of letters and digits, as the widest usual fonts have it.
double width_in(std::string_view label, double print) {
  double width = 0;
  for (const char c : label) width += c == 'W' ? 0.99 : c == '.' ? 0.32 : c >= 'A' ? 0.69 : 0.64;
  return width * print;
}

struct BarLabel {
  std::string text;
  double print = 0;
};

// The forms of a label from the longest to the shortest that still says something: "F1.3", or "F3"
// if no rank holds several chunks, and "3".
std::vector<std::string> forms_of(const Timeline& timeline, const TimedTask& task) {
  const std::string letter(letter_of(task.kind));
  const bool says_chunk = !timeline.one_chunk && task.chunk > 0;
  const std::string chunk = says_chunk ? std::to_string(std::int32_t{task.chunk}) : "";
  if (task.microbatch == kNoMicrobatch) return {letter + chunk};
  const std::string number = std::to_string(std::int32_t{task.microbatch});
  std::vector<std::string> forms{letter + number, number};
  if (says_chunk) forms.insert(forms.begin(), letter + chunk + "." + number);
  return forms;
}

// The longest form that a bar has room for, if need be in somewhat smaller print.
BarLabel fitted(const Timeline& timeline, const TimedTask& task, double width, double print) {
  constexpr double kSmaller = 0.86;
  const auto fits = [&](std::string_view label, double at) {
    return width_in(label, at) < width - 1;
  };
  if (!fits("1", kSmaller * print)) return {};
  for (std::string& form : forms_of(timeline, task)) {
    for (const double at : {print, kSmaller * print}) {
      if (fits(form, at)) return {.text = std::move(form), .print = at};
    }
  }
  return {};
}

// Later chunks are paler, as papers have it, but for dark bars with white letters.
std::string_view shade_of(const SvgLayout& layout, const TimedTask& task) {
  constexpr std::array<std::string_view, 4> kShades{
      "", "\" fill-opacity=\".62", "\" fill-opacity=\".4", "\" fill-opacity=\".25"};
  const bool dark = layout.options.page == Page::Column && task.kind == Kind::BackwardWeight;
  if (!is_compute(task.kind) || task.chunk < 1 || dark) return "";
  return kShades[std::min(kShades.size() - 1, ChunkId(task.chunk).index())];
}

// A task without a length is drawn as a line, so that it is seen.
double seen(double width) {
  return std::max(0.8, width);
}

// A strip at the lower edge of a bar, from the bar's beginning on.
void write_quantizing(const SvgLayout& layout, const TimedTask& task, Markup& out) {
  if (task.quantizing <= 0) return;
  constexpr double kStrip = 0.18;  // of a bar
  const Row& row = layout.row_of(task.lane);
  const double height = row.height / task.members;
  const double strip = kStrip * height;
  layout.for_each_piece(task.begin, task.begin + task.quantizing, [&](const Piece& piece) {
    const double y = row.top + piece.drop + height * (task.member + 1) - strip;
    out.add("<rect class=\"quantize\" x=\"", Length{piece.x}, "\" y=\"", Length{y}, "\" width=\"",
            Length{piece.width}, "\" height=\"", Length{strip}, "\"/>");
  });
}

// The members of a composite lie one above the other, since they run together.
void write_bar(const SvgLayout& layout, const TimedTask& task, Markup& out) {
  const Row& row = layout.row_of(task.lane);
  const double height = row.height / task.members;
  const double print = std::min(layout.measures.print, 0.72 * height);
  layout.for_each_piece(task.begin, task.end, [&](const Piece& piece) {
    const double y = row.top + piece.drop + height * task.member;
    const double width = seen(piece.width);
    out.add("<rect x=\"", Length{piece.x}, "\" y=\"", Length{y}, "\" width=\"", Length{width},
            "\" height=\"", Length{height}, shade_of(layout, task), "\"/>");
    const BarLabel label = fitted(layout.timeline, task, width, print);
    if (label.text.empty()) return;
    out.add("<text x=\"", Length{piece.x + width / 2}, "\" y=\"",
            Length{y + height / 2 + 0.35 * label.print}, "\" font-size=\"", Length{label.print},
            "\" text-anchor=\"middle\">", label.text, "</text>");
  });
  write_quantizing(layout, task, out);
}

struct Stretch {
  double begin = 0;
  double end = 0;
  double quantizing = 0;
};

void write_title(const SvgLayout& layout, const TimedTask& task, const Stretch& of, Markup& out) {
  const Timeline& timeline = layout.timeline;
  out.add("<title>", Escaped{timeline.label(task.id)}, " of rank ", layout.rank_of(task));
  if (timeline.origin == Timeline::Origin::Listed) {
    out.add(", at index ", figure(of.begin), " of its order</title>");
    return;
  }
  out.add(": from ", time_words(timeline, of.begin), " to ", time_words(timeline, of.end), ", ",
          time_words(timeline, of.end - of.begin), " long");
  if (of.quantizing > 0) out.add(", ", time_words(timeline, of.quantizing), " of it quantizing");
  out.add("</title>");
}

void write_action(const SvgLayout& layout, const Bars& action, Markup& out) {
  const auto task_at = [&](std::size_t at) -> const TimedTask& {
    return layout.timeline.tasks[layout.sorted[at]];
  };
  const TimedTask& first = task_at(action.first);
  Stretch of{.begin = first.begin, .end = first.end};
  for (std::size_t at = action.first; at < action.last; ++at) {
    of.begin = std::min(of.begin, task_at(at).begin);
    of.end = std::max(of.end, task_at(at).end);
    of.quantizing += task_at(at).quantizing;
  }
  out.add("<g class=\"", class_of(first.kind), "\" data-rank=\"", layout.rank_of(first),
          "\" data-chunk=\"", first.chunk, "\" data-microbatch=\"", first.microbatch,
          "\" data-start=\"", ExactNumber{of.begin}, "\" data-end=\"", ExactNumber{of.end}, "\">");
  write_title(layout, first, of, out);
  for (std::size_t at = action.first; at < action.last; ++at) write_bar(layout, task_at(at), out);
  out.add("</g>\n");
}

// The edge around the members of a composite.
void write_together(const SvgLayout& layout, const TimedTask& first, Markup& out) {
  const Row& row = layout.row_of(first.lane);
  layout.for_each_piece(first.begin, first.end, [&](const Piece& piece) {
    out.add("<rect class=\"together\" x=\"", Length{piece.x}, "\" y=\"",
            Length{row.top + piece.drop}, "\" width=\"", Length{seen(piece.width)}, "\" height=\"",
            Length{row.height}, "\"/>\n");
  });
}

// The curve of a rank's memory on one line of time, as a closed path.
class Curve {
 public:
  Curve(const SvgLayout& layout, std::size_t rank, double most)
      : layout_(layout), course_(layout.timeline.memory[rank]), most_(most) {
    base_ = layout.end_of_band(rank) - 1;
  }

  [[nodiscard]] double base() const { return base_; }

  void write(std::size_t line, Markup& out) {
    const double base = base_ + layout_.drop_of(line);
    out.add("M", Length{layout_.x_on(layout_.axis.begin_of(line), line)}, " ", Length{base});
    if (line > 0) out.add("V", Length{height_of(held_, base)});
    const bool is_last = line + 1 == layout_.axis.lines;
    const double end = std::min(layout_.axis.end_of(line), layout_.timeline.makespan);
    for (; at_ < course_.size() && (is_last || course_[at_].time < end); ++at_) {
      // A task that ends makes room for one that begins at the same moment.
      if (at_ + 1 < course_.size() && course_[at_ + 1].time <= course_[at_].time) continue;
      held_ = course_[at_].held;
      out.add("H", Length{layout_.x_on(course_[at_].time, line)}, "V",
              Length{height_of(held_, base)});
    }
    out.add("H", Length{layout_.x_on(end, line)}, "V", Length{base}, "z");
  }

 private:
  [[nodiscard]] double height_of(double held, double base) const {
    return base - layout_.measures.memory * std::max(0.0, held) / most_;
  }

  const SvgLayout& layout_;
  const std::vector<HeldMemory>& course_;
  double most_ = 0;
  double base_ = 0;
  std::size_t at_ = 0;  // the first moment that is not written
  double held_ = 0;
};

// The highest level that lasts: a task that ends makes room at the same moment.
double lasting_peak(const std::vector<HeldMemory>& course) {
  double peak = 0;
  for (std::size_t at = 0; at < course.size(); ++at) {
    if (at + 1 < course.size() && course[at + 1].time <= course[at].time) continue;
    peak = std::max(peak, course[at].held);
  }
  return peak;
}

void write_memory_of(const SvgLayout& layout, std::size_t rank, double most, Markup& out) {
  const std::string peak = figure(lasting_peak(layout.timeline.memory[rank]));
  Curve curve(layout, rank, most);
  out.add("<path class=\"held\" d=\"");
  for (std::size_t line = 0; line < layout.axis.lines; ++line) curve.write(line, out);
  out.add("\"><title>memory of rank ", rank, ": at most ", peak, "</title></path>\n");
  const Measures& measures = layout.measures;
  for (std::size_t line = 0; line < layout.axis.lines; ++line) {
    write_text({layout.axis.left - 4, curve.base() + layout.drop_of(line) - 0.2 * measures.small},
               measures.small, " class=\"soft\" text-anchor=\"end\"", "memory, peak " + peak, out);
  }
}

}  // namespace

void write_bubbles(const SvgLayout& layout, Markup& out) {
  const Timeline& timeline = layout.timeline;
  const Row* row = nullptr;
  for (const Bubble& bubble : timeline.bubbles) {
    if (row == nullptr || row->rank != bubble.rank) row = layout.computing_row(bubble.rank);
    if (row == nullptr || bubble.end <= bubble.begin) continue;
    layout.for_each_piece(bubble.begin, bubble.end, [&](const Piece& piece) {
      out.add("<rect class=\"bubble\" x=\"", Length{piece.x}, "\" y=\"",
              Length{row->top + piece.drop}, "\" width=\"", Length{piece.width}, "\" height=\"",
              Length{row->height}, "\" fill=\"url(#idle)\"><title>idle from ",
              time_words(timeline, bubble.begin), " to ", time_words(timeline, bubble.end), ": ",
              Escaped{bubble.why}, "</title></rect>\n");
    });
  }
}

void write_memory(const SvgLayout& layout, Markup& out) {
  double most = 0;
  for (const auto& rank : layout.timeline.memory) {
    for (const HeldMemory& moment : rank) most = std::max(most, moment.held);
  }
  if (most <= 0) return;
  for (std::size_t rank = 0; rank < layout.timeline.ranks; ++rank) {
    if (layout.has_memory(rank)) write_memory_of(layout, rank, most, out);
  }
}

void write_actions(const SvgLayout& layout, Markup& out) {
  for (const Bars& action : layout.actions) write_action(layout, action, out);
  for (const TimedTask& task : layout.timeline.tasks) {
    if (task.members > 1 && task.member == 0) write_together(layout, task, out);
  }
}

}  // namespace capo
