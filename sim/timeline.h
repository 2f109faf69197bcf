// When everything ran: predicted by the simulator, later measured on a device.
//
// Times are in the unit of the costs and begin at 0 with the first task. Kept by vertex of the task
// graph, so that a transfer has when it was issued and when it was over, and what each vertex
// waited for last can be followed back to the beginning (bounds.h, idle.h).

#pragma once

#include "core/graph/task_graph.h"

#include <vector>

namespace capo {

constexpr Vertex kNoVertex = 0xffffffff;

struct Timeline {
  std::vector<double> begin;  ///< by vertex: when all that it waited for was there
  std::vector<double> done;
  /// By vertex: what it waited for last; kNoVertex where it waited for nothing.
  std::vector<Vertex> bound_by;
  double makespan = 0;  ///< when the last task was over

  [[nodiscard]] double start_of(const TaskGraph& graph, TaskId task) const {
    return begin[graph.start(task)];
  }
  [[nodiscard]] double end_of(const TaskGraph& graph, TaskId task) const {
    return done[graph.end(task)];
  }
};

}  // namespace capo
