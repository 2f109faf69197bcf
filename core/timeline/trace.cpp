#include "core/base/index.h"
#include "core/timeline/picture.h"
#include "core/timeline/timeline.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace capo {

namespace {

using Json = nlohmann::ordered_json;

std::string_view category_of(Kind kind) {
  if (kind == Kind::Forward) return "forward";
  if (kind == Kind::BackwardWeight) return "weight";
  return is_compute(kind) ? "backward" : "communication";
}

Json naming(const char* what, std::int32_t process, std::size_t thread, const std::string& name) {
  return {
      {"name", what}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

Json event_of(const TimedTask& task, const Timeline& timeline) {
  Json arguments = Json::object();
  if (task.stage) arguments["stage"] = *task.stage;
  arguments["microbatch"] = task.microbatch;
  return {{"name", timeline.label(task.id)},
          {"cat", category_of(task.kind)},
          {"ph", "X"},
          {"ts", task.begin},
          {"dur", task.end - task.begin},
          {"pid", timeline.lanes[task.lane].rank},
          {"tid", task.lane},
          {"args", std::move(arguments)}};
}

// A slice within that of its task, which it follows in the trace; it begins where the task does.
Json slice_of_quantization(const TimedTask& task, double takes, const Timeline& timeline) {
  return {{"name", "quantize " + timeline.label(task.id)},
          {"cat", kQuantization},
          {"ph", "X"},
          {"ts", task.begin},
          {"dur", takes},
          {"pid", timeline.lanes[task.lane].rank},
          {"tid", task.lane},
          {"args", Json::object()}};
}

Json counter_of(std::size_t rank, const HeldMemory& memory) {
  return {{"name", "held"},
          {"ph", "C"},
          {"ts", memory.time},
          {"pid", rank},
          {"args", {{"activations", memory.held}}}};
}

Json instant_of(const Alarm& alarm, const Spot& spot, const Timeline& timeline) {
  return {{"name", alarm.rule}, {"cat", "finding"},
          {"ph", "i"},          {"s", "t"},
          {"ts", spot.begin},   {"pid", timeline.lanes[spot.lane].rank},
          {"tid", spot.lane},   {"args", {{"finding", alarm.words}}}};
}

// Events are written one by one: a step of a million tasks is one string, not a tree of them.
class Events {
 public:
  void add(const Json& event) {
    text_ += text_.empty() ? "\n" : ",\n";
    text_ += event.dump();
  }

  void add_timeline(const Timeline& timeline) {
    for (std::size_t rank = 0; rank < timeline.ranks; ++rank) {
      add(naming("process_name", static_cast<std::int32_t>(rank), 0, fmt::format("rank {}", rank)));
    }
    for (std::size_t lane = 0; lane < timeline.lanes.size(); ++lane) {
      const auto& [rank, name] = timeline.lanes[lane];
      if (!name.empty()) add(naming("thread_name", rank, lane, name));
    }
    for (std::size_t at = 0; at < timeline.tasks.size(); ++at) {
      const TimedTask& task = timeline.tasks[at];
      if (task.member > 0) continue;
      add(event_of(task, timeline));
      const double quantizing = quantizing_together(timeline, at);
      if (quantizing > 0) add(slice_of_quantization(task, quantizing, timeline));
    }
    for (std::size_t rank = 0; rank < timeline.memory.size(); ++rank) {
      for (const HeldMemory& memory : timeline.memory[rank]) add(counter_of(rank, memory));
    }
  }

  void add_alarms(const Picture& picture) {
    for (const Alarm& alarm : picture.alarms) {
      for (const Spot& spot : alarm.places) add(instant_of(alarm, spot, picture.timeline));
    }
  }

  /// The whole trace; `more` stands before the events.
  [[nodiscard]] std::string trace(const std::string& more) const {
    return "{\"displayTimeUnit\": \"ms\", " + more + "\"traceEvents\": [" + text_ + "\n]}\n";
  }

 private:
  std::string text_;
};

Json findings_as_json(const Picture& picture) {
  Json findings = Json::array();
  for (const Alarm& alarm : picture.alarms) findings.push_back(alarm.words);
  return findings;
}

}  // namespace

std::string_view name_of(Timeline::Origin origin) {
  constexpr std::array<std::string_view, 3> kNames{"predicted", "measured", "listed"};
  return kNames[as_index(origin)];
}

double quantizing_together(const Timeline& timeline, std::size_t at) {
  double takes = timeline.tasks[at].quantizing;
  for (++at; at < timeline.tasks.size() && timeline.tasks[at].member > 0; ++at) {
    takes += timeline.tasks[at].quantizing;
  }
  return takes;
}

bool tells_quantization(const Timeline& timeline) {
  return std::any_of(timeline.tasks.begin(), timeline.tasks.end(),
                     [](const TimedTask& task) { return task.quantizing > 0; });
}

std::string chrome_trace(const Timeline& timeline) {
  Events events;
  events.add_timeline(timeline);
  return events.trace("");
}

std::string chrome_trace(const Picture& picture) {
  Events events;
  events.add_timeline(picture.timeline);
  events.add_alarms(picture);
  const Timeline& timeline = picture.timeline;
  const bool measures = timeline.unit == Timeline::Unit::Microseconds;
  const Json about{{"title", picture.title},
                   {"verdict", picture.verdict},
                   {"setting", picture.setting},
                   {"findings", findings_as_json(picture)}};
  return events.trace(fmt::format(
      R"("schema": "{}", "origin": "{}", "unit": "{}", "otherData": {}, )", kTimelineSchema,
      name_of(timeline.origin), measures ? "microseconds" : "costs", about.dump()));
}

}  // namespace capo
