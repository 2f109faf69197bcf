// Task graphs of small schedules, and lowerings that random moves have made wrong: what the tests
// of running and of the shortest cycle share.
//
//   shuffle_transfers()   F1.0 send-F1.0 recv-B1.0 B1.0   ->   F1.0 recv-B1.0 send-F1.0 B1.0
//
// No receive ever comes behind its reader and no send before its maker, so waiting is the only
// fault that a shuffled lowering can have.

#pragma once

#include "core/graph/build.h"
#include "core/graph/execution.h"
#include "core/graph/lowered.h"
#include "core/graph/stage_map.h"
#include "tests/core/graph/graph_text.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

namespace capo::testing_support {

using Lines = std::vector<std::string>;

struct Wired {
  Lowered lowered;
  TaskGraph graph;
};

inline Wired wired(const Schedule& schedule, const Lowered& lowered, const Environment& environment,
                   const std::vector<CollectiveGroup>& groups = {}) {
  Wired made{.lowered = own(lowered), .graph = {}};
  made.graph = wire_transfers(made.lowered, StageMap(schedule), schedule.microbatches.value(),
                              environment, groups)
                   .graph;
  return made;
}

inline Wired wired(const std::string& text, const Environment& environment = {},
                   const std::vector<CollectiveGroup>& groups = {}) {
  const Schedule schedule = read_schedule(text);
  return wired(schedule, as_written(schedule), environment, groups);
}

inline Wired wired_directly(const std::string& text) {
  const Schedule schedule = read_schedule(text);
  Wired made{.lowered = own(as_written(schedule)), .graph = {}};
  made.graph = wire_directly(made.lowered, StageMap(schedule), schedule.microbatches.value());
  return made;
}

// Lines such as "0:B1.0 (stream)": each task waits, for that reason, for the task in the next line.
inline Lines cycle_of(const Wired& made) {
  Lines lines;
  for (const WaitEdge& wait : shortest_cycle(made.graph, execute(made.graph))) {
    lines.push_back(task_name(made.graph, made.lowered, wait.task) + " (" + word_of(wait.kind) +
                    ")");
  }
  return lines;
}

// Moves each receive of a right lowering to some point before its reader and each send to some
// point behind its maker; now and then two neighbouring transfers become one group.
inline void shuffle_transfers(Lowered& lowered, std::mt19937& random, bool fuse) {
  for (StepList& list : lowered.ranks) {
    std::vector<Step> steps(list.begin(), list.end());
    for (std::size_t at = 0; at < steps.size(); ++at) {
      const bool later = is_send(steps[at].kind);
      if ((!later && !is_receive(steps[at].kind)) || random() % 3 > 0) continue;
      for (std::size_t hops = random() % 4, here = at; hops > 0; --hops) {
        const std::size_t next = later ? here + 1 : here - 1;
        if (next >= steps.size()) break;
        std::swap(steps[here], steps[next]);
        here = next;
      }
    }
    for (std::size_t at = 0; fuse && at + 1 < steps.size(); ++at) {
      if (!is_transfer(steps[at].kind) || !is_transfer(steps[at + 1].kind)) continue;
      if (random() % 2 == 0) continue;
      steps[at].group = Group::Opens;
      steps[++at].group = Group::Continues;
    }
    list = StepList(std::move(steps));
  }
}

}  // namespace capo::testing_support
