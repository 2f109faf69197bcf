#include "core/base/index.h"
#include "core/timeline/timeline.h"

#include "core/timeline/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace capo {

namespace {

// Leaves out the chunk where every rank holds one: "F1.3&B1.2" becomes "F3&B2".
std::string without_chunks(const std::string& label) {
  std::string out;
  for (std::size_t at = 0; at < label.size();) {
    if (label.compare(at, 2, "1.") == 0) {
      at += 2;
      while (at < label.size() && label[at] != '&') out += label[at++];
    } else {
      out += label[at++];
    }
  }
  return out;
}

char letter_of(Kind kind, const std::string& label) {
  if (label.find('&') != std::string::npos) return '&';
  if (kind == Kind::Forward) return 'f';
  return kind == Kind::BackwardWeight ? 'w' : 'b';
}

constexpr char kIdle = '.';

// The colour of a kind's letter, as an escape sequence of terminals has it.
int code_of(char letter) {
  switch (letter) {
    case 'f':
      return 34;
    case 'b':
      return 32;
    case 'w':
      return 33;
    case '&':
      return 35;
    default:
      return 2;  // faint
  }
}

// A rank's cells, and the letter of the task in each, which decides its colour.
struct Line {
  std::string cells;
  std::string letters;
};

std::string shown(const Line& line, Colour colour) {
  if (colour == Colour::Off) return line.cells;
  std::string text;
  for (std::size_t begin = 0; begin < line.cells.size();) {
    const std::size_t end =
        std::min(line.letters.find_first_not_of(line.letters[begin], begin), line.cells.size());
    text += fmt::format("\x1b[{}m{}\x1b[0m", code_of(line.letters[begin]),
                        line.cells.substr(begin, end - begin));
    begin = end;
  }
  return text;
}

// A time with its unit, where the timeline has one; "3.65" of costs without.
std::string time_in_words(double time, Timeline::Unit unit) {
  if (unit == Timeline::Unit::Costs) return figure(time);
  if (time >= 1e6) return figure(time * 1e-6) + " s";
  if (time >= 1e3) return figure(time * 1e-3) + " ms";
  return figure(time) + " us";
}

}  // namespace

std::string text_grid(const Timeline& timeline, const GridOptions& options) {
  const std::string widest = fmt::format("rank {} |", timeline.ranks == 0 ? 0 : timeline.ranks - 1);
  const std::size_t cells =
      std::max<std::size_t>(options.width, widest.size() + 2) - widest.size() - 1;
  const double per_cell = timeline.makespan / static_cast<double>(cells);
  const auto cell = [&](double time) {
    return std::min(cells, as_index(std::lround(time / per_cell)));
  };
  std::vector<Line> lines(timeline.ranks, {std::string(cells, kIdle), std::string(cells, kIdle)});
  for (const TimedTask& task : timeline.tasks) {
    if (!is_compute(task.kind) || task.member > 0 || per_cell <= 0) continue;
    Line& line = lines[as_index(timeline.lanes[task.lane].rank)];
    const std::size_t from = cell(task.begin);
    const std::size_t to = cell(task.end);
    const std::string whole = timeline.label(task.id);
    const std::string label = timeline.one_chunk ? without_chunks(whole) : whole;
    const char letter = letter_of(task.kind, label);
    for (std::size_t at = from; at < to; ++at) {
      line.letters[at] = letter;
      line.cells[at] = to - from <= 1 ? letter : at - from < label.size() ? label[at - from] : '-';
    }
  }
  std::string text;
  for (std::size_t rank = 0; rank < lines.size(); ++rank) {
    if (options.rank && RankId(*options.rank).index() != rank) continue;
    text += fmt::format("{:<{}}|{}|\n", fmt::format("rank {}", rank), widest.size() - 1,
                        shown(lines[rank], options.colour));
  }
  return text + fmt::format("one character is {}\n", time_in_words(per_cell, timeline.unit));
}

}  // namespace capo
