// Fills a timeline from a simulation, for who draws it. Tested by timeline_of_test.cpp.

#include "core/timeline/table.h"
#include "sim/simulation.h"

#include <fmt/format.h>

#include <algorithm>

namespace capo {

namespace {

// The tasks of one vertex: `F1.3&B2.0` of a composite.
std::string label_of_vertex(const Simulation& simulation, TaskId first) {
  std::string label;
  simulation.graph().for_each_task(simulation.graph().start(first), [&](TaskId task) {
    if (!label.empty()) label += '&';
    label += simulation.label(task);
  });
  return label;
}

bool has_several_chunks(const Schedule& schedule) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(),
                     [](const RankOrder& rank) { return rank.chunks > 1; });
}

TaskId first_of_vertex(const TaskGraph& graph, TaskId id) {
  return graph.task_of[graph.start(id)];
}

std::uint8_t members_of(const TaskGraph& graph, TaskId id) {
  int members = 0;
  graph.for_each_task(graph.start(id), [&](TaskId) { ++members; });
  return static_cast<std::uint8_t>(std::min(members, 255));
}

TimedTask timed(const Simulation& simulation, TaskId id) {
  const TaskGraph& graph = simulation.graph();
  const Task& task = graph.tasks[id];
  const Step& step = step_of(simulation.subject().lowered, task);
  TimedTask timed{.begin = simulation.times().start_of(graph, id),
                  .end = simulation.times().end_of(graph, id),
                  .lane = task.stream,
                  .id = id,
                  .stage = task.stage,
                  .microbatch = task.microbatch,
                  .kind = task.kind,
                  .chunk = step.chunk,
                  .entry = step.entry,
                  .quantizing = simulation.quantizing(id)};
  if (!is_compute(task.kind) || !task.member) return timed;
  timed.member = static_cast<std::uint8_t>(std::min<TaskId>(id - first_of_vertex(graph, id), 254));
  timed.members = members_of(graph, id);
  return timed;
}

std::string placed_label(const Simulation& simulation, TaskId task) {
  return simulation.label(task) + " of rank " +
         std::to_string(std::int32_t{simulation.graph().tasks[task].rank});
}

std::string why_idle(const Simulation& simulation, const Idle& idle) {
  if (idle.cause == Idle::Cause::Drain) return "nothing runs any more";
  if (idle.waits_for == kNoTask) return std::string(name_of(idle.cause));
  std::string why =
      simulation.label(idle.next) + " waits for " + placed_label(simulation, idle.waits_for);
  if (idle.exposed > 0) why += ", " + figure(idle.exposed) + " of it for bytes";
  return why;
}

// Idle time is summed by what a reader could change: the order, or the bytes that it waits for.
std::string_view cause_of(const Idle& idle) {
  const bool for_bytes = idle.exposed > (idle.end - idle.begin) / 2;
  return idle.cause == Idle::Cause::Wait && for_bytes ? "communication" : name_of(idle.cause);
}

static_assert(kNoTask == kNoPosition, "tasks of a timeline are those of its graph, in order");

std::vector<Bubble> bubbles_of(const Simulation& simulation) {
  std::vector<Bubble> bubbles;
  for (std::size_t rank = 0; rank < simulation.ranks().size(); ++rank) {
    for (const Idle& idle : simulation.ranks()[rank].idle) {
      bubbles.push_back({.rank = static_cast<std::int32_t>(rank),
                         .begin = idle.begin,
                         .end = idle.end,
                         .why = why_idle(simulation, idle),
                         .cause = cause_of(idle),
                         .next = idle.next,
                         .on = idle.waits_for,
                         .exposed = idle.exposed});
    }
  }
  return bubbles;
}

std::string stream_name(const Stream& stream) {
  if (!stream.name.empty()) return stream.name;
  if (stream.runs == Stream::Runs::Computations) return "compute";
  if (stream.peer_low < 0) return "p2p";
  return fmt::format("p2p {}-{}{}", stream.peer_low, stream.peer_high,
                     stream.communicator == 0 ? "" : " second");
}

std::vector<HeldMemory> held_by(const Simulation& simulation, std::size_t rank) {
  std::vector<HeldMemory> held;
  for (const MemoryStep& step : simulation.memory_course(static_cast<std::int32_t>(rank))) {
    held.push_back({.time = step.time, .held = step.held});
  }
  return held;
}

// The task that bound the start of another; kNoPosition if none did. A collective's meeting point
// is none, and what bound it counts.
std::uint32_t bound_of(const Simulation& simulation, TaskId task) {
  const TaskGraph& graph = simulation.graph();
  const auto bound_by = [&](Vertex vertex) { return simulation.times().bound_by[vertex]; };
  Vertex at = bound_by(graph.start(task));
  while (at != kNoVertex && graph.is_meeting(at)) at = bound_by(at);
  return at == kNoVertex ? kNoPosition : graph.task_of[at];
}

// Whether an edge says more than the order of a lane does.
bool crosses_lanes(const TaskGraph& graph, const TaskEdge& edge) {
  return graph.tasks[edge.before].stream != graph.tasks[edge.after].stream &&
         !graph.is_meeting(edge.from) && !graph.is_meeting(edge.to);
}

}  // namespace

void add_causes(const Simulation& simulation, Timeline& timeline) {
  const TaskGraph& graph = simulation.graph();
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    timeline.bound_by.push_back(bound_of(simulation, id));
  }
  graph.for_each_task_edge([&](const TaskEdge& edge) {
    if (!crosses_lanes(graph, edge)) return;
    timeline.waits.push_back({.task = edge.after, .on = edge.before});
  });
  std::sort(timeline.waits.begin(), timeline.waits.end());
  timeline.waits.erase(std::unique(timeline.waits.begin(), timeline.waits.end()),
                       timeline.waits.end());
}

Timeline timeline_of(const Simulation& simulation) {
  const TaskGraph& graph = simulation.graph();
  Timeline timeline{.origin = Timeline::Origin::Predicted,
                    .unit = simulation.costs().in_microseconds ? Timeline::Unit::Microseconds
                                                               : Timeline::Unit::Costs,
                    .ranks = simulation.ranks().size(),
                    .makespan = simulation.makespan(),
                    .one_chunk = !has_several_chunks(simulation.subject().schedule)};
  for (const Stream& stream : graph.streams) {
    timeline.lanes.push_back({.rank = stream.rank, .name = stream_name(stream)});
  }
  timeline.tasks.reserve(graph.tasks.size());
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    timeline.tasks.push_back(timed(simulation, id));
  }
  for (std::size_t rank = 0; rank < timeline.ranks; ++rank) {
    timeline.memory.push_back(held_by(simulation, rank));
  }
  timeline.bubbles = bubbles_of(simulation);
  timeline.path = critical_path(simulation.subject(), simulation.times());  // tasks by their ids
  timeline.label = [&simulation](TaskId id) {
    const bool computes = is_compute(simulation.graph().tasks[id].kind);
    return computes ? label_of_vertex(simulation, id) : simulation.label(id);
  };
  return timeline;
}

}  // namespace capo
