#include "sim/draw_timeline.h"

#include "sim/report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace capo {

namespace {

using Json = nlohmann::ordered_json;

// What runs on one vertex: `F1.3&B2.0` of a composite.
std::string label_of_vertex(const Simulation& simulation, TaskId first) {
  std::string label;
  simulation.graph().for_each_task(simulation.graph().start(first), [&](TaskId task) {
    if (!label.empty()) label += '&';
    label += simulation.label(task);
  });
  return label;
}

// The same without chunks, where every rank holds one: "F1.3" is "F3".
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

bool has_several_chunks(const Schedule& schedule) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(),
                     [](const RankOrder& rank) { return rank.chunks > 1; });
}

char letter_of(const Simulation& simulation, TaskId first, const std::string& label) {
  if (label.find('&') != std::string::npos) return '&';
  switch (simulation.graph().tasks[first].kind) {
    case Kind::Forward:
      return 'f';
    case Kind::BackwardWeight:
      return 'w';
    default:
      return 'b';
  }
}

bool begins_vertex(const TaskGraph& graph, TaskId id) {
  return graph.task_of[graph.start(id)] == id;
}

std::string stream_name(const Stream& stream) {
  if (!stream.name.empty()) return stream.name;
  if (stream.runs == Stream::Runs::Computations) return "compute";
  if (stream.peer_low < 0) return "p2p";
  return fmt::format("p2p {}-{}{}", stream.peer_low, stream.peer_high,
                     stream.communicator == 0 ? "" : " second");
}

std::string_view category_of(Kind kind) {
  if (kind == Kind::Forward) return "forward";
  if (kind == Kind::BackwardWeight) return "weight";
  return is_compute(kind) ? "backward" : "communication";
}

Json naming(const char* what, std::int32_t process, std::int64_t thread, const std::string& name) {
  return {
      {"name", what}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

}  // namespace

std::string text_grid(const Simulation& simulation, std::size_t width) {
  const TaskGraph& graph = simulation.graph();
  const std::size_t ranks = simulation.ranks().size();
  const std::string widest = fmt::format("rank {} |", ranks == 0 ? 0 : ranks - 1);
  const std::size_t cells = std::max<std::size_t>(width, widest.size() + 2) - widest.size() - 1;
  const bool several = has_several_chunks(simulation.subject().schedule);
  const double per_cell = simulation.makespan() / static_cast<double>(cells);
  std::string text;
  for (std::size_t r = 0; r < ranks; ++r) {
    std::string line(cells, '.');
    for (TaskId id = graph.first_of[r]; id < graph.first_of[r + 1]; ++id) {
      if (!is_compute(graph.tasks[id].kind) || !begins_vertex(graph, id) || per_cell <= 0) continue;
      const auto cell = [&](double time) {
        return std::min(cells, static_cast<std::size_t>(std::lround(time / per_cell)));
      };
      const std::size_t from = cell(simulation.timeline().start_of(graph, id));
      const std::size_t to = cell(simulation.timeline().end_of(graph, id));
      const std::string whole = label_of_vertex(simulation, id);
      const std::string label = several ? whole : without_chunks(whole);
      for (std::size_t at = from; at < to; ++at) {
        line[at] = to - from <= 1             ? letter_of(simulation, id, label)
                   : at - from < label.size() ? label[at - from]
                                              : '-';
      }
    }
    text += fmt::format("{:<{}}{}|\n", fmt::format("rank {}", r), widest.size() - 1, "|" + line);
  }
  return text + fmt::format("one character is {}\n", figure(per_cell));
}

std::string chrome_trace(const Simulation& simulation) {
  const TaskGraph& graph = simulation.graph();
  // Events are written one by one: a step of a million tasks is one string, not a tree of them.
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  bool first = true;
  const auto add = [&](const Json& event) {
    text += first ? "\n" : ",\n";
    first = false;
    text += event.dump();
  };
  for (std::size_t r = 0; r < simulation.ranks().size(); ++r) {
    add(naming("process_name", static_cast<std::int32_t>(r), 0, fmt::format("rank {}", r)));
  }
  for (std::size_t s = 0; s < graph.streams.size(); ++s) {
    add(naming("thread_name", graph.streams[s].rank, static_cast<std::int64_t>(s),
               stream_name(graph.streams[s])));
  }
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    const Task& task = graph.tasks[id];
    const bool in_a_composite = is_compute(task.kind) && !begins_vertex(graph, id);
    if (in_a_composite) continue;
    const double start = simulation.timeline().start_of(graph, id);
    add({{"name", is_compute(task.kind) ? label_of_vertex(simulation, id) : simulation.label(id)},
         {"cat", category_of(task.kind)},
         {"ph", "X"},
         {"ts", start},
         {"dur", simulation.timeline().end_of(graph, id) - start},
         {"pid", task.rank},
         {"tid", task.stream},
         {"args", {{"stage", task.stage}, {"microbatch", task.microbatch}}}});
  }
  for (std::size_t r = 0; r < simulation.ranks().size(); ++r) {
    for (const MemoryStep& step : simulation.memory_course(static_cast<std::int32_t>(r))) {
      add({{"name", "held"},
           {"ph", "C"},
           {"ts", step.time},
           {"pid", r},
           {"args", {{"activations", step.held}}}});
    }
  }
  return text + "\n]}\n";
}

}  // namespace capo
