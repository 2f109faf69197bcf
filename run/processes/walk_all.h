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
//
// The transfers and collectives of a task graph as one rank issues them over a message library,
// with no tensors: what an order does that nobody has verified.
//
//   Walk walk(of, rank, library, issued);
//   while (walk.go_on()) ...           until nothing of this rank can go on
//   walk.ran(), walk.came()            how far it came, and which send each receive was paired with
//
// A vertex runs when all that it waits for on its own rank is over; what it waits for on others is
// the library's to say, which is asked and never waited for. So each stream of the rank goes on by
// itself, and what is stuck in the end is stuck whatever the order of launches. A message holds the
// number of its send's task and nothing else, which shows how messages pair. A collective of
// several ranks is a message from each member to each other one, on a communicator of the group and
// with the collective's tag, so that it is over where all members have begun the same. Libraries
// without tags are not asked to walk collectives. Tested by tests/testing/truth/across_test.sh,
// tests/run/processes/walk_test.cpp and tests/cli/mpi_reductions_test.cpp.

#pragma once

#include "core/graph/execution.h"
#include "core/graph/lowered.h"
#include "core/graph/meetings.h"
#include "core/graph/stage_map.h"
#include "core/graph/task_graph.h"
#include "core/model/environment.h"
#include "core/model/model.h"
#include "core/rules/wiring.h"
#include "run/execute/transport.h"
#include "run/mpi/message_library.h"
#include "run/processes/processes.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace capo::run {

/// The receive that ended, and the send whose message it got.
struct Came {
  TaskId receive = kNoTask;
  TaskId send = kNoTask;
};

/// The way in which transfers are issued.
struct Issued {
  Communicators layout = Communicators::PerRank;
  MessageLibrary::Mode mode = MessageLibrary::Mode::Rendezvous;
  /// The library's number of the first of kCommunicatorsBetween communicators, behind which each
  /// group has one.
  int first = 0;
};

/// These describe the order that is walked, and outlive the walk.
struct Walkable {
  const TaskGraph& graph;
  const Lowered& lowered;  ///< that the graph was made of
  const StageMap& map;
  const Execution& execution;
  const Environment& environment;
  const std::vector<TransferFault>& faults;  ///< that were found when the graph was made
  std::span<const CollectiveGroup> groups;
};

/// The orders of a wiring that is executable, with their transfers.
[[nodiscard]] Walkable walkable(const Wiring& wiring);

class Walk {
 public:
  /// All arguments but the last outlive the walk.
  Walk(const Walkable& of, std::int32_t rank, MessageLibrary& library, const Issued& issued);

  /// Runs all that can run now; returns whether anything did.
  bool go_on();
  /// Takes back what has begun and is not over.
  void cancel();
  /// Whether all of this rank has run.
  [[nodiscard]] bool finished() const;

  [[nodiscard]] const std::vector<Vertex>& ran() const { return ran_; }
  [[nodiscard]] const std::vector<Came>& came() const { return came_; }
  /// Its collectives have the tags from 0 to before this.
  [[nodiscard]] int tags() const { return static_cast<int>(tags_.size()); }

 private:
  struct Begun {
    TaskId task = kNoTask;
    int request = 0;
    bool over = false;
    TaskId carries = kNoTask;  // what a send sends, and a receive gets
  };

  [[nodiscard]] bool own(Vertex vertex) const;
  void begin(Vertex vertex);
  void begin_transfer(TaskId id);
  void begin_collective(TaskId id, const CollectiveGroup& group, int communicator);
  [[nodiscard]] const CollectiveGroup* group_of_task(TaskId id) const;
  [[nodiscard]] bool can_begin(Vertex vertex);
  [[nodiscard]] bool arrived(Vertex start);
  [[nodiscard]] bool over(Vertex vertex);
  void run(Vertex vertex);

  const TaskGraph& graph_;
  const Lowered& lowered_;
  const StageMap& map_;
  std::span<const CollectiveGroup> groups_;
  std::int32_t rank_;
  MessageLibrary& library_;
  Issued issued_;
  std::vector<std::uint32_t> waits_for_;  // by vertex: vertices of this rank that have not run
  std::vector<Vertex> ready_;             // all that they wait for on this rank is over
  std::deque<Begun> begun_;               // messages lie here until they are over
  std::set<Vertex> tried_;                // starts of collectives that should never be over
  // Members that are at the same point with different collectives have different tags there, as the
  // model has them wait for ever. They are numbered over the whole graph, alike on every rank.
  std::map<Collective, int> tags_;
  std::size_t count_ = 0;  // vertices of this rank
  std::vector<Vertex> ran_;
  std::vector<Came> came_;
};

struct WalkedRanks {
  std::set<Vertex> ran;
  std::map<TaskId, TaskId> came;  ///< by receive: the send whose message it got
  /// Tells of a process that did not answer, or why nothing was walked; else empty.
  std::string silent;
};

/// How sends of the environment are made.
[[nodiscard]] MessageLibrary::Mode mode_of(const Environment& environment);

/// Whether collectives of several ranks are walked.
enum class Meetings : std::uint8_t { AreWalked, AreNot };

/// Whether it can be walked: no channel is full after so many bytes, and every transfer has a
/// partner. The task graph leaves out one that has none, which a library would match with the next
/// that comes.
[[nodiscard]] bool can_be_walked(const Walkable& of, Meetings meetings);

/// Precondition: there are at least as many processes as ranks.
[[nodiscard]] WalkedRanks walk_all(Processes& processes, const Walkable& of);

/// How long nothing of a rank goes on before it counts as stuck: on its way to where it should come
/// to, and there, when all have come as far as they do.
struct Patience {
  Processes::Duration on_the_way{2};
  Processes::Duration at_its_end{0.1};
};

/// Walks with the messages of another library, which says by itself how far each rank comes.
[[nodiscard]] WalkedRanks observe(Processes& processes, MessageLibrary& messages,
                                  const Walkable& of, const Patience& patience);

/// The messages that an order is walked with, where the processes' own are not meant.
struct WalkMessages {
  std::string name = "MPI";
  /// Makes them for a layout, and the numbers of the communicators between two ranks that are used.
  /// Null: those of the processes.
  std::function<std::unique_ptr<MessageLibrary>(Communicators, std::vector<int>)> make;
};
/// The numbers of the communicators between two ranks that its transfers go through.
[[nodiscard]] std::vector<int> communicators_used(const Walkable& of);

/// All processes call. At rank 0 the first error of any of their libraries, empty if there is none:
/// a rank that broke off looks as if it hung.
[[nodiscard]] std::string error_of_any(Processes& processes, const MessageLibrary& messages);

/// Says what differs from the prediction; empty if nothing does.
[[nodiscard]] std::string difference(const Walkable& of, const WalkedRanks& walked);
/// The messages that a receive got for another one.
[[nodiscard]] std::size_t mismatches(const TaskGraph& graph, const WalkedRanks& walked);

}  // namespace capo::run
