// A task graph walked by all processes together, until each rank is as far as the execution on
// paper says, and a little further if it can.
//
//   walk_all(processes, of)   at rank 0: how far all of them came, and which messages met
//   difference(of, walked)    empty if that is what was predicted
//
// No clock is asked unless the prediction fails: a process goes on until it has come as far as it
// should, meets the others there, and tries to go further, when nothing that could let it is under
// way any more. What is stuck then is cancelled, and what was sent and not received stays in
// communicators that nothing uses again. Tested by tests/testing/truth/across_test.sh and
// tests/cli/mpi_test.cpp.

#pragma once

#include "core/graph/execution.h"
#include "run/processes/processes.h"
#include "run/processes/walk.h"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace capo::run {

/// These describe the order that is walked, and outlive the walk.
struct Walkable {
  const TaskGraph& graph;
  const Lowered& lowered;  ///< that the graph was made of
  const StageMap& map;
  const Execution& execution;
  const Environment& environment;
  const std::vector<TransferFault>& faults;  ///< that were found when the graph was made
};

struct WalkedRanks {
  std::set<Vertex> ran;
  std::map<TaskId, TaskId> came;  ///< by receive: the send whose message it got
  std::string silent;             ///< tells of a process that did not answer; else empty
};

/// How sends of the environment are made.
[[nodiscard]] MessageLibrary::Mode mode_of(const Environment& environment);

/// Whether it can be walked: no collectives meet in it, no channel is full after so many bytes, and
/// every transfer has a partner. The task graph leaves out one that has none, which a library would
/// match with the next that comes.
[[nodiscard]] bool can_be_walked(const Walkable& of);

/// Precondition: there are at least as many processes as ranks.
[[nodiscard]] WalkedRanks walk_all(Processes& processes, const Walkable& of);

/// Walks with the messages of another library, which says by itself how far each rank comes: a rank
/// stays where it is when nothing of it went on for so long.
[[nodiscard]] WalkedRanks observe(Processes& processes, MessageLibrary& messages,
                                  const Walkable& of, Processes::Duration patience);

/// The messages that an order is walked with, where the processes' own are not meant.
struct WalkMessages {
  std::string name = "MPI";
  /// Makes them for a layout, and the numbers of the communicators between two ranks that are used.
  /// Null: those of the processes.
  std::function<std::unique_ptr<MessageLibrary>(Communicators, std::vector<int>)> make;
};
/// The numbers of the communicators between two ranks that its transfers go through.
[[nodiscard]] std::vector<int> communicators_used(const Walkable& of);

/// Says what differs from the prediction; empty if nothing does.
[[nodiscard]] std::string difference(const Walkable& of, const WalkedRanks& walked);
/// The messages that a receive got for another one.
[[nodiscard]] std::size_t mismatches(const TaskGraph& graph, const WalkedRanks& walked);

}  // namespace capo::run
