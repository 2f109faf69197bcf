// Fills a timeline from a simulation, for who draws it. Tested by timeline_of_test.cpp.

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

std::vector<HeldMemory> held_by(const Simulation& simulation, std::size_t rank) {
  std::vector<HeldMemory> held;
  for (const MemoryStep& step : simulation.memory_course(static_cast<std::int32_t>(rank))) {
    held.push_back({.time = step.time, .held = step.held});
  }
  return held;
}

}  // namespace

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
    const Task& task = graph.tasks[id];
    if (is_compute(task.kind) && !begins_vertex(graph, id)) continue;  // inside a composite
    timeline.tasks.push_back({.begin = simulation.times().start_of(graph, id),
                              .end = simulation.times().end_of(graph, id),
                              .lane = task.stream,
                              .id = id,
                              .stage = task.stage,
                              .microbatch = task.microbatch,
                              .kind = task.kind});
  }
  for (std::size_t rank = 0; rank < timeline.ranks; ++rank) {
    timeline.memory.push_back(held_by(simulation, rank));
  }
  timeline.label = [&simulation](TaskId id) {
    const bool computes = is_compute(simulation.graph().tasks[id].kind);
    return computes ? label_of_vertex(simulation, id) : simulation.label(id);
  };
  return timeline;
}

}  // namespace capo
