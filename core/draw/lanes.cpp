#include "core/draw/lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace capo {

namespace {

// Points.
constexpr double kNames = 74;   // for the names of ranks at the left
constexpr double kMargin = 26;  // at the right, for rows that go on
constexpr double kRow = 24;     // the height of a node
constexpr double kBetweenRows = 20;
constexpr double kBetweenRanks = 30;  // with room for the words of red lines
constexpr double kBetweenLines = 26;
constexpr double kBetweenColumns = 16;
constexpr double kTitleLine = 17;
constexpr double kLetter = 6.3;
constexpr double kSmallLetter = 5.2;  // of all that does not compute
constexpr double kHead = 6;           // of an arrow

double width_of(const DrawnNode& node) {
  const double letter = is_compute(node.kind) ? kLetter : kSmallLetter;
  return letter * static_cast<double>(node.label.size()) + 14;
}

}  // namespace

Lanes::Lanes(const Drawing& drawing, std::size_t columns) : drawing_(drawing) {
  find_columns();
  find_rows();
  choose_columns(columns);
  place_nodes();
  place_bands();
}

// The longest path to each node. In a circle the node that is listed first goes on as if what it
// waits for had come.
void Lanes::find_columns() {
  const std::size_t nodes = drawing_.nodes.size();
  std::vector<std::vector<std::uint32_t>> behind(nodes);
  std::vector<std::size_t> waits(nodes, 0);
  for (const DrawnLine& line : drawing_.lines) {
    if (!line.waits) continue;
    behind[line.from].push_back(line.to);
    ++waits[line.to];
  }
  column_of_.assign(nodes, 0);
  std::vector<bool> done(nodes, false);
  std::vector<std::uint32_t> ready;
  const auto finish = [&](std::uint32_t node) {
    done[node] = true;
    for (const std::uint32_t next : behind[node]) {
      if (done[next]) continue;
      column_of_[next] = std::max(column_of_[next], column_of_[node] + 1);
      if (--waits[next] == 0) ready.push_back(next);
    }
  };
  for (std::uint32_t node = 0; node < nodes; ++node) {
    if (waits[node] == 0) ready.push_back(node);
  }
  for (std::uint32_t first = 0; first < nodes; ++first) {
    for (; !ready.empty();) {
      const std::uint32_t node = ready.back();
      ready.pop_back();
      finish(node);
    }
    if (!done[first]) finish(first);
  }
  for (const std::size_t column : column_of_) last_column_ = std::max(last_column_, column);
}

void Lanes::find_rows() {
  std::map<std::pair<std::int32_t, std::uint32_t>, std::size_t> rows;
  for (const DrawnNode& node : drawing_.nodes) rows[{node.rank, node.stream}];
  double depth = kBetweenLines;
  for (auto& [lane, row] : rows) {
    const bool same_rank = !rank_of_.empty() && rank_of_.back() == lane.first;
    if (!rank_of_.empty()) depth += kRow + (same_rank ? kBetweenRows : kBetweenRanks);
    row = rank_of_.size();
    rank_of_.push_back(lane.first);
    depth_of_.push_back(depth + kRow / 2);
  }
  for (const DrawnNode& node : drawing_.nodes) row_of_.push_back(rows[{node.rank, node.stream}]);
  line_height_ = depth + kRow + kBetweenLines;
  for (const DrawnNode& node : drawing_.nodes) pitch_ = std::max(pitch_, width_of(node));
  pitch_ += kBetweenColumns;
}

double Lanes::page_height(std::size_t columns) const {
  const auto lines = static_cast<double>(last_column_ / columns + 1);
  const auto title = 1 + std::count(drawing_.title.begin(), drawing_.title.end(), '\n');
  return lines * line_height_ + (static_cast<double>(title) + 1) * kTitleLine;
}

void Lanes::choose_columns(std::size_t wanted) {
  constexpr double kProportion = 1.3;
  constexpr std::size_t kLeast = 8;
  const auto page_width = [&](std::size_t columns) {
    return kNames + kMargin + pitch_ * static_cast<double>(columns);
  };
  const std::size_t all = last_column_ + 1;
  columns_ = wanted == 0 ? std::min(all, kLeast) : std::min(all, wanted);
  while (wanted == 0 && columns_ < all &&
         page_width(columns_) < kProportion * page_height(columns_)) {
    ++columns_;
  }
  // Words of the title are about as wide as labels.
  std::size_t longest = 0;
  for (std::size_t at = 0; at < drawing_.title.size();) {
    const std::size_t end = std::min(drawing_.title.find('\n', at), drawing_.title.size());
    longest = std::max(longest, end - at);
    at = end + 1;
  }
  width_ = std::max(page_width(columns_), kLetter * 1.1 * static_cast<double>(longest));
  height_ = page_height(columns_);
}

void Lanes::place_nodes() {
  for (std::size_t node = 0; node < drawing_.nodes.size(); ++node) {
    const auto column = static_cast<double>(column_of_[node] % columns_);
    const double top = static_cast<double>(line_of(node)) * line_height_;
    boxes_.push_back({.x = kNames + (column + 0.5) * pitch_,
                      .y = height_ - top - depth_of_[row_of_[node]],
                      .width = width_of(drawing_.nodes[node]),
                      .height = kRow});
  }
}

void Lanes::place_bands() {
  for (std::size_t line = 0; line <= last_column_ / columns_; ++line) {
    const double top = height_ - static_cast<double>(line) * line_height_;
    for (std::size_t row = 0; row < rank_of_.size();) {
      std::size_t last = row;
      while (last + 1 < rank_of_.size() && rank_of_[last + 1] == rank_of_[row]) ++last;
      const double middle = (depth_of_[row] + depth_of_[last]) / 2;
      const double high = depth_of_[last] - depth_of_[row] + kRow + 12;
      const double wide = width_ - kMargin / 2 - 4;
      bands_.push_back(
          {.rank = rank_of_[row],
           .line = line,
           .box = {.x = 4 + wide / 2, .y = top - middle, .width = wide, .height = high}});
      row = last + 1;
    }
  }
}

Box Lanes::title() const {
  const double below = height_ - line_height_ * static_cast<double>(last_column_ / columns_ + 1);
  return {.x = width_ / 2, .y = below / 2, .width = width_, .height = below};
}

// Whether a line joins two that follow each other in a row, of which the second is in the next
// line.
bool Lanes::is_fold(const DrawnLine& line) const {
  return line.of == EdgeClass::Order && row_of_[line.from] == row_of_[line.to] &&
         line_of(line.to) > line_of(line.from);
}

// Around the right margin, back between the lines, and in from the left.
std::string Lanes::folded_path(const DrawnLine& line) const {
  const Box& a = boxes_[line.from];
  const Box& b = boxes_[line.to];
  const auto row = static_cast<double>(row_of_[line.from]);
  const double right = width_ - kMargin + 4 + std::fmod(2 * row, 12);
  const double left = kNames - 4 - std::fmod(2 * row, 8);
  const double between = height_ - line_height_ * static_cast<double>(line_of(line.to)) +
                         std::fmod(2 * row, kBetweenLines) - kBetweenLines / 2;
  const std::vector<std::pair<double, double>> corners{
      {a.x + a.width / 2, a.y}, {right, a.y}, {right, between},
      {left, between},          {left, b.y},  {b.x - b.width / 2 - kHead, b.y}};
  std::string path = fmt::format("e,{:.1f},{:.1f} {:.1f},{:.1f}", b.x - b.width / 2, b.y,
                                 corners.front().first, corners.front().second);
  for (std::size_t at = 1; at < corners.size(); ++at) {
    const auto [x0, y0] = corners[at - 1];
    const auto [x1, y1] = corners[at];
    path += fmt::format(" {:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}", x0, y0, x1, y1, x1, y1);
  }
  return path;
}

Lanes::Curve Lanes::curve_of(const DrawnLine& line) const {
  const Box& a = boxes_[line.from];
  const Box& b = boxes_[line.to];
  if (line_of(line.from) == line_of(line.to) && row_of_[line.from] == row_of_[line.to]) {
    const bool next = column_of_[line.to] == column_of_[line.from] + 1;
    if (next && line.of != EdgeClass::Witness) {
      const double middle = (a.x + b.x) / 2;
      return {a.x + a.width / 2, a.y, middle, a.y, middle, b.y, b.x - b.width / 2, b.y};
    }
    // An arc above the row, or below it if it leads back; neighbours have several heights.
    const double side = b.x > a.x ? 1 : -1;
    const double high = side * (kRow / 2);
    const double arc = side * (9 + 3.5 * static_cast<double>(column_of_[line.to] % 4));
    const double lean = std::min(std::abs(b.x - a.x) / 4, pitch_ / 2) * side;
    return {a.x + 4 * side, a.y + high,       a.x + lean,     a.y + high + arc,
            b.x - lean,     b.y + high + arc, b.x - 4 * side, b.y + high};
  }
  const double side = b.y < a.y ? -1 : 1;
  const double bend = side * std::min(40.0, std::abs(b.y - a.y) / 3);
  return {a.x, a.y + side * kRow / 2,        a.x, a.y + side * kRow / 2 + bend,
          b.x, b.y - side * kRow / 2 - bend, b.x, b.y - side * kRow / 2};
}

std::string Lanes::path(const DrawnLine& line) const {
  if (is_fold(line)) return folded_path(line);
  const Curve curve = curve_of(line);
  // The curve ends where the head of the arrow begins.
  const double along = std::max(0.1, std::hypot(curve.to_x - curve.in_x, curve.to_y - curve.in_y));
  const double end_x = curve.to_x - kHead * (curve.to_x - curve.in_x) / along;
  const double end_y = curve.to_y - kHead * (curve.to_y - curve.in_y) / along;
  return fmt::format("e,{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}",
                     curve.to_x, curve.to_y, curve.from_x, curve.from_y, curve.out_x, curve.out_y,
                     curve.in_x, curve.in_y, end_x, end_y);
}

bool Lanes::is_free(const Box& words) const {
  const auto meets = [&](const Box& other) {
    return std::abs(words.x - other.x) < (words.width + other.width) / 2 + 2 &&
           std::abs(words.y - other.y) < (words.height + other.height) / 2;
  };
  const bool on_page = words.y + words.height / 2 < height_ && words.y > words.height / 2;
  return on_page && std::none_of(boxes_.begin(), boxes_.end(), meets) &&
         std::none_of(words_.begin(), words_.end(), meets);
}

Box Lanes::place_words(const DrawnLine& line) {
  constexpr double kLetterOfWords = 4.9;
  const Curve curve = curve_of(line);
  const double width = kLetterOfWords * static_cast<double>(line.words.size());
  const double least = std::min(width / 2 + 4, width_ / 2);
  const auto place = [&](double part, double aside) {
    const double rest = 1 - part;
    const auto mixed = [&](double from, double out, double in, double to) {
      return rest * rest * (rest * from + 3 * part * out) +
             part * part * (3 * rest * in + part * to);
    };
    const double x = mixed(curve.from_x, curve.out_x, curve.in_x, curve.to_x);
    return Box{.x = std::clamp(x, least, std::max(least, width_ - least)),
               .y = mixed(curve.from_y, curve.out_y, curve.in_y, curve.to_y) + aside,
               .width = width,
               .height = 11};
  };
  Box best = place(0.5, 9);
  for (int tries = 1; tries < 60 && !is_free(best); ++tries) {
    constexpr std::array<double, 5> kParts{0.5, 0.35, 0.65, 0.2, 0.8};
    const std::size_t row = static_cast<std::size_t>(tries) / kParts.size();
    const double aside = 9 + 6 * static_cast<double>(row / 2);
    best = place(kParts[static_cast<std::size_t>(tries) % kParts.size()],
                 row % 2 == 0 ? aside : -aside);
  }
  words_.push_back(best);
  return best;
}

}  // namespace capo
