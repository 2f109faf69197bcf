#include "core/draw/picture_of.h"

#include "core/base/assert.h"
#include "core/base/plural.h"
#include "core/rules/rule.h"
#include "core/rules/words.h"
#include "core/text/action_token.h"
#include "core/text/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace capo {

namespace {

// The index that a user counts, of each entry: members of a composite share theirs.
std::vector<std::uint32_t> indices_of(const std::vector<Entry>& order) {
  std::vector<std::uint32_t> indices;
  std::uint32_t next = 0;
  for (const Entry& entry : order) {
    indices.push_back(entry.group == Group::Continues ? next - 1 : next++);
  }
  return indices;
}

// A list may hold numbers that are no actions, which count and have no entry.
std::vector<std::uint32_t> indices_in_list(const Input& input, std::size_t rank) {
  const std::size_t begin = input.te_begins.empty() ? 0 : input.te_begins[rank];
  const std::size_t length = te_list_of(input, rank).size();
  std::vector<std::uint32_t> indices;
  auto odd = std::lower_bound(input.odd_entries.begin(), input.odd_entries.end(), begin);
  for (std::uint32_t at = 0; at < length; ++at) {
    if (odd != input.odd_entries.end() && *odd == begin + at) {
      ++odd;
    } else {
      indices.push_back(at);
    }
  }
  return indices;
}

std::vector<std::uint32_t> indices_of(const Input& input, std::size_t rank,
                                      const std::vector<Entry>& order) {
  if (input.odd_entries.empty()) return indices_of(order);
  std::vector<std::uint32_t> indices = indices_in_list(input, rank);
  CAPO_ASSERT(indices.size() == order.size(), "a number is an action or is odd");
  return indices;
}

// The number of entries of the composite that begins at `first`.
std::size_t members_from(const std::vector<Entry>& order, std::size_t first) {
  std::size_t end = first + 1;
  while (end < order.size() && order[end].group == Group::Continues) ++end;
  return end - first;
}

void list_rank(const Input& input, std::uint32_t rank, Timeline& timeline) {
  const std::vector<Entry>& order = input.schedule.ranks[rank].order;
  const std::vector<std::uint32_t> indices = indices_of(input, rank, order);
  if (!input.odd_entries.empty()) {
    const auto length = static_cast<double>(te_list_of(input, rank).size());
    timeline.makespan = std::max(timeline.makespan, length);
  }
  std::size_t first = 0;
  for (std::uint32_t at = 0; at < order.size(); ++at) {
    const Entry& entry = order[at];
    if (entry.group != Group::Continues) first = at;
    timeline.makespan = std::max(timeline.makespan, indices[at] + 1.0);
    if (entry.kind == Kind::Idle) continue;
    const auto small = [](std::size_t n) {
      return static_cast<std::uint8_t>(std::min<std::size_t>(n, 255));
    };
    timeline.tasks.push_back({.begin = static_cast<double>(indices[at]),
                              .end = indices[at] + 1.0,
                              .lane = rank,
                              .id = static_cast<std::uint32_t>(timeline.tasks.size()),
                              .microbatch = entry.microbatch,
                              .kind = entry.kind,
                              .member = small(at - first),
                              .members = small(members_from(order, first)),
                              .chunk = entry.chunk,
                              .entry = at});
  }
}

std::string label_of(const TimedTask& task) {
  return to_token({.kind = task.kind, .chunk = task.chunk, .microbatch = task.microbatch},
                  Naming::Named);
}

Spot spot_of(const TimedTask& task) {
  return {.lane = task.lane, .begin = task.begin, .end = task.end};
}

// Finds the tasks of a timeline by what a witness says of them.
class Places {
 public:
  Places(const Input& input, const Timeline& timeline) : timeline_(timeline) {
    const bool captured = timeline.origin == Timeline::Origin::Listed;
    for (const RankOrder& rank : input.schedule.ranks) {
      orders_.push_back(rank.replay && !captured ? &*rank.replay : &rank.order);
      indices_.push_back(indices_of(input, indices_.size(), *orders_.back()));
    }
    for (std::uint32_t at = 0; at < timeline.tasks.size(); ++at) {
      if (timeline.tasks[at].entry != kNoPosition) by_index_.emplace_back(key_of(at), at);
    }
    std::sort(by_index_.begin(), by_index_.end());
  }

  /// The position of the task in the timeline; kNoPosition if it has none there. A transfer that
  /// is not drawn stands at the entry that it was added for.
  [[nodiscard]] std::uint32_t find(const WitnessEntry& entry) const {
    const Key key{entry.rank, static_cast<std::uint32_t>(entry.index)};
    auto at = std::lower_bound(by_index_.begin(), by_index_.end(), std::pair(key, 0U));
    std::uint32_t found = kNoPosition;
    for (; at != by_index_.end() && at->first == key; ++at) {
      const TimedTask& task = timeline_.tasks[at->second];
      const Action action{.kind = task.kind, .chunk = task.chunk, .microbatch = task.microbatch};
      if (action_name(action) == entry.action) return at->second;
      if (found == kNoPosition) found = at->second;
    }
    return found;
  }

  /// The remark that a finding has about the entry of a task; empty if it has none.
  [[nodiscard]] std::string remark_at(const Diagnostic& finding, std::uint32_t task) const {
    const TimedTask& of = timeline_.tasks[task];
    const Span span = (*orders_[rank_of(of)])[of.entry].span();
    const auto label = std::find_if(finding.labels.begin(), finding.labels.end(),
                                    [&](const Label& each) { return each.span == span; });
    return label == finding.labels.end() ? "" : label->text;
  }

 private:
  using Key = std::pair<std::int32_t, std::uint32_t>;

  [[nodiscard]] std::size_t rank_of(const TimedTask& task) const {
    return RankId(timeline_.lanes[task.lane].rank).index();
  }
  [[nodiscard]] Key key_of(std::uint32_t at) const {
    const TimedTask& task = timeline_.tasks[at];
    const std::size_t rank = rank_of(task);
    return {static_cast<std::int32_t>(rank), indices_[rank][task.entry]};
  }

  const Timeline& timeline_;
  std::vector<const std::vector<Entry>*> orders_;
  std::vector<std::vector<std::uint32_t>> indices_;  // by rank and entry
  std::vector<std::pair<Key, std::uint32_t>> by_index_;
};

// A task of a cycle says what it waits for; of other witnesses each says what happens to it.
std::string words_of(const Diagnostic& finding, const Places& places, std::uint32_t from,
                     std::uint32_t to) {
  const bool waits = finding.witness.kind == WitnessKind::WaitCycle;
  std::string remark = places.remark_at(finding, waits ? from : to);
  return remark.empty() ? std::string(find_rule(finding.rule)->name) : remark;
}

Alarm alarm_of(const Diagnostic& finding, const Places& places, const Timeline& timeline) {
  Alarm alarm{.rule = std::string(finding.rule),
              .words = fmt::format("{}[{}]: {}", name_of(finding.severity), finding.rule,
                                   printable(finding.message))};
  std::vector<std::uint32_t> tasks;
  for (const WitnessEntry& entry : finding.witness.tasks) {
    const std::uint32_t found = places.find(entry);
    if (found == kNoPosition || (!tasks.empty() && tasks.back() == found)) continue;
    tasks.push_back(found);
    alarm.places.push_back(spot_of(timeline.tasks[found]));
  }
  const bool closes = finding.witness.kind == WitnessKind::WaitCycle && tasks.size() > 1;
  for (std::size_t at = 0; at + (closes ? 0 : 1) < tasks.size(); ++at) {
    const std::uint32_t from = tasks[at];
    const std::uint32_t to = tasks[(at + 1) % tasks.size()];
    alarm.arrows.push_back({.from = spot_of(timeline.tasks[from]),
                            .to = spot_of(timeline.tasks[to]),
                            .words = words_of(finding, places, from, to)});
  }
  return alarm;
}

// The entry at the index that a finding names, though it is no action and so no task.
void mark_by_index(const Diagnostic& finding, Alarm& alarm, const Timeline& timeline) {
  for (const WitnessEntry& entry : finding.witness.tasks) {
    const auto lane = static_cast<std::uint32_t>(entry.rank);
    if (lane >= timeline.lanes.size()) continue;
    const auto begin = static_cast<double>(entry.index);
    alarm.places.push_back({.lane = lane, .begin = begin, .end = begin + 1});
  }
}

// A replay's orders where one was drawn, which stand behind the capture's text in the source.
OrderText order_text(const Input& input, const Timeline& timeline) {
  OrderText order{.text = input.source.text};
  const bool captured = timeline.origin == Timeline::Origin::Listed;
  for (const RankOrder& rank : input.schedule.ranks) {
    auto& stretches = order.entries.emplace_back();
    for (const Entry& entry : rank.replay && !captured ? *rank.replay : rank.order) {
      stretches.push_back({.offset = entry.offset, .length = entry.length});
    }
  }
  return order;
}

}  // namespace

Timeline listed(const Input& input) {
  const auto& ranks = input.schedule.ranks;
  Timeline timeline{.origin = Timeline::Origin::Listed, .ranks = ranks.size()};
  timeline.one_chunk = std::all_of(ranks.begin(), ranks.end(),
                                   [](const RankOrder& rank) { return rank.chunks <= 1; });
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    timeline.lanes.push_back({.rank = static_cast<std::int32_t>(rank), .name = "order"});
    list_rank(input, static_cast<std::uint32_t>(rank), timeline);
  }
  auto labels = std::make_shared<std::vector<std::string>>();
  for (const TimedTask& task : timeline.tasks) labels->push_back(label_of(task));
  timeline.label = [labels](std::uint32_t id) { return (*labels)[id]; };
  return timeline;
}

std::vector<Alarm> alarms_of(const Input& input, const Report& report, const Timeline& timeline) {
  std::vector<Alarm> alarms;
  if (report.diagnostics.kept().empty()) return alarms;
  const Places places(input, timeline);
  for (const Diagnostic& finding : report.diagnostics.kept()) {
    alarms.push_back(alarm_of(finding, places, timeline));
    const bool listed = timeline.origin == Timeline::Origin::Listed;
    if (alarms.back().places.empty() && listed) mark_by_index(finding, alarms.back(), timeline);
  }
  return alarms;
}

Picture picture_of(const Input& input, const Report& report, Timeline timeline,
                   const std::string& why_listed) {
  Picture picture{.title = printable(input.source.name),
                  .accepted = report.verdict == Verdict::Accepted,
                  .alarms = alarms_of(input, report, timeline)};
  picture.order = order_text(input, timeline);
  picture.timeline = std::move(timeline);
  const std::string text = verdict_text(report);
  std::size_t end = text.find('\n');
  picture.verdict = text.substr(0, end);
  while (end != std::string::npos && end + 1 < text.size()) {
    const std::size_t begin = text.find_first_not_of(' ', end + 1);
    end = text.find('\n', begin);
    picture.setting.push_back(text.substr(begin, end - begin));
  }
  if (const std::size_t left = report.diagnostics.dropped(); left > 0) {
    picture.setting.push_back(
        fmt::format("not drawn: {}; `capo check` tells of all",
                    counted(static_cast<std::int64_t>(left), "more finding")));
  }
  if (!why_listed.empty()) {
    picture.setting.push_back(
        fmt::format("without times, each entry at its index: {}", why_listed));
  }
  return picture;
}

}  // namespace capo
