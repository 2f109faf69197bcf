// A small timeline of two ranks, written by hand, for tests of what is drawn.

#pragma once

#include "core/timeline/timeline.h"

#include <string>
#include <utility>
#include <vector>

namespace capo::timelines {

/// Tasks of one rank and one lane, labelled in their order.
inline Timeline on_one_lane(std::vector<TimedTask> tasks, std::vector<std::string> labels) {
  Timeline timeline{.ranks = 1, .lanes = {{.rank = 0, .name = "compute"}}};
  for (TimedTask& task : tasks) {
    task.id = static_cast<std::uint32_t>(timeline.tasks.size());
    timeline.makespan = std::max(timeline.makespan, task.end);
    timeline.tasks.push_back(task);
  }
  timeline.label = [labels = std::move(labels)](std::uint32_t id) { return labels[id]; };
  return timeline;
}

}  // namespace capo::timelines
