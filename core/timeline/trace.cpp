#include "core/timeline/timeline.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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

Json counter_of(std::size_t rank, const HeldMemory& memory) {
  return {{"name", "held"},
          {"ph", "C"},
          {"ts", memory.time},
          {"pid", rank},
          {"args", {{"activations", memory.held}}}};
}

}  // namespace

std::string chrome_trace(const Timeline& timeline) {
  // Events are written one by one: a step of a million tasks is one string, not a tree of them.
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  bool first = true;
  const auto add = [&](const Json& event) {
    text += first ? "\n" : ",\n";
    first = false;
    text += event.dump();
  };
  for (std::size_t rank = 0; rank < timeline.ranks; ++rank) {
    add(naming("process_name", static_cast<std::int32_t>(rank), 0, fmt::format("rank {}", rank)));
  }
  for (std::size_t lane = 0; lane < timeline.lanes.size(); ++lane) {
    const auto& [rank, name] = timeline.lanes[lane];
    if (!name.empty()) add(naming("thread_name", rank, lane, name));
  }
  for (const TimedTask& task : timeline.tasks) add(event_of(task, timeline));
  for (std::size_t rank = 0; rank < timeline.memory.size(); ++rank) {
    for (const HeldMemory& memory : timeline.memory[rank]) add(counter_of(rank, memory));
  }
  return text + "\n]}\n";
}

}  // namespace capo
