#include "core/timeline/svg_parts.h"

#include "core/base/index.h"
#include "core/base/plural.h"

#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

namespace capo {

namespace {

constexpr std::size_t kNoRow = std::numeric_limits<std::size_t>::max();

}  // namespace

SvgLayout::SvgLayout(const Picture& of_picture, const SvgOptions& given, const Axis& of_time,
                     double y, std::vector<double> for_words)
    : picture(of_picture),
      timeline(of_picture.timeline),
      options(given),
      axis(of_time),
      measures(measures_of(given.page)),
      top(y),
      room(std::move(for_words)) {
  room.resize(timeline.ranks + 1, 0.0);
  sort_actions();
  place_rows();
}

// An action's parts stand side by side in sorted, so that one group holds them.
void SvgLayout::sort_actions() {
  sorted.resize(timeline.tasks.size());
  for (std::uint32_t at = 0; at < sorted.size(); ++at) sorted[at] = at;
  const auto key = [&](std::uint32_t at) {
    const TimedTask& task = timeline.tasks[at];
    return std::tuple(rank_of(task), is_compute(task.kind) ? task.entry : kNoPosition, task.kind);
  };
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  for (std::size_t at = 0; at < sorted.size(); ++at) {
    const auto [rank, entry, kind] = key(sorted[at]);
    const bool goes_on = at > 0 && entry != kNoPosition && key(sorted[at]) == key(sorted[at - 1]);
    if (!goes_on) actions.push_back({.first = at, .last = at});
    actions.back().last = at + 1;
  }
}

void SvgLayout::place_rows() {
  const std::vector<bool> used = lanes_used();
  std::vector<std::vector<std::uint32_t>> lanes_of(timeline.ranks);
  for (std::uint32_t lane = 0; lane < timeline.lanes.size(); ++lane) {
    if (used[lane]) lanes_of[RankId(timeline.lanes[lane].rank).index()].push_back(lane);
  }
  row_of_.assign(timeline.lanes.size(), kNoRow);
  double y = rows_begin();
  for (std::size_t rank = 0; rank < timeline.ranks; ++rank) {
    bands.push_back(y);
    for (const std::uint32_t lane : lanes_of[rank]) {
      row_of_[lane] = rows.size();
      const bool alone = options.page == Page::Column && lanes_of[rank].size() == 1;
      y = add_row(rank, alone ? "" : timeline.lanes[lane].name, height_of(lane), y);
    }
    if (lanes_of[rank].empty()) y = add_row(rank, "idle", measures.computing, y);
    if (has_memory(rank)) y += measures.memory + 2;
    y += gap_above(rank + 1);
  }
  bottom = y;
  line = bottom - rows_begin() + 2.6 * measures.print;
}

double SvgLayout::add_row(std::size_t rank, const std::string& name, double height, double y) {
  rows.push_back(
      {.rank = static_cast<std::int32_t>(rank), .name = name, .top = y, .height = height});
  return y + height + 2;
}

std::vector<bool> SvgLayout::lanes_used() const {
  std::vector<bool> used(timeline.lanes.size(), false);
  for (const TimedTask& task : timeline.tasks) used[task.lane] = true;
  for (const Alarm& alarm : picture.alarms) {
    for (const Spot& spot : alarm.places) used[spot.lane] = true;
  }
  return used;
}

double SvgLayout::height_of(std::uint32_t lane) const {
  const std::string& name = timeline.lanes[lane].name;
  const bool computes = name == "compute" || name == "wgrad" || name == "order";
  return computes ? measures.computing : measures.moving;
}

std::size_t SvgLayout::line_of(double y) const {
  const double above =
      std::clamp(std::floor((y - rows_begin()) / line), 0.0, static_cast<double>(axis.lines - 1));
  return as_index(std::llround(above));
}

std::size_t SvgLayout::gap_at(SvgPoint point) const {
  const double y = point.y - drop_of(line_of(point.y));
  const auto below = std::upper_bound(bands.begin(), bands.end(), y);
  return as_index(below - bands.begin());
}

const Row* SvgLayout::computing_row(std::int32_t rank) const {
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const Row& each) { return each.rank == rank; });
  return row == rows.end() ? nullptr : &*row;
}

std::vector<std::string> SvgLayout::setting_lines() const {
  std::vector<std::string> lines;
  for (const std::string& fact : picture.setting) {
    for (std::string& each : wrapped(fact, text_columns())) lines.push_back(std::move(each));
  }
  return lines;
}

double SvgLayout::heading_end() const {
  const std::size_t lines = options.page == Page::Column ? 1 : 2 + setting_lines().size();
  return top + measures.margin + 1.35 * measures.print * static_cast<double>(lines);
}

double SvgLayout::rows_begin() const {
  return heading_end() + gap_above(0);
}

}  // namespace capo
