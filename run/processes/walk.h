// The transfers of a task graph as one rank issues them over a message library, with no tensors:
// what an order does that nobody has verified.
//
//   Walk walk(graph, lowered, map, rank, library, issued);
//   while (walk.go_on()) ...           until nothing of this rank can go on
//   walk.ran(), walk.came()            how far it came, and which send each receive was paired with
//
// A vertex runs when all that it waits for on its own rank is over; what it waits for on others is
// the library's to say, which is asked and never waited for. So each stream of the rank goes on by
// itself, and what is stuck in the end is stuck whatever the order of launches. A message holds the
// number of its send's task and nothing else, which shows how messages pair. Collectives over ranks
// are not walked. Tested by tests/testing/truth/across_test.sh.

#pragma once

#include "core/graph/lowered.h"
#include "core/graph/stage_map.h"
#include "core/graph/task_graph.h"
#include "core/model/environment.h"
#include "run/mpi/message_library.h"

#include <cstddef>
#include <cstdint>
#include <deque>
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
  int first = 0;  ///< the library's number of the first of kCommunicatorsBetween communicators
};
inline constexpr int kCommunicatorsBetween = 4;

class Walk {
 public:
  /// All arguments but the last outlive the walk.
  Walk(const TaskGraph& graph, const Lowered& lowered, const StageMap& map, std::int32_t rank,
       MessageLibrary& library, const Issued& issued);

  /// Runs all that can run now; returns whether anything did.
  bool go_on();
  /// Takes back what has begun and is not over.
  void cancel();
  /// Whether all of this rank has run.
  [[nodiscard]] bool finished() const;

  [[nodiscard]] const std::vector<Vertex>& ran() const { return ran_; }
  [[nodiscard]] const std::vector<Came>& came() const { return came_; }

 private:
  struct Begun {
    TaskId task = kNoTask;
    int request = 0;
    bool over = false;
    TaskId carries = kNoTask;  // what a send sends, and a receive gets
  };

  [[nodiscard]] bool own(Vertex vertex) const;
  void begin(Vertex vertex);
  [[nodiscard]] bool can_begin(Vertex vertex) const;
  [[nodiscard]] bool over(Vertex vertex);
  void run(Vertex vertex);

  const TaskGraph& graph_;
  const Lowered& lowered_;
  const StageMap& map_;
  std::int32_t rank_;
  MessageLibrary& library_;
  Issued issued_;
  std::vector<std::uint32_t> waits_for_;  // by vertex: vertices of this rank that have not run
  std::vector<Vertex> ready_;             // all that they wait for on this rank is over
  std::deque<Begun> begun_;               // messages lie here until they are over
  std::size_t count_ = 0;                 // vertices of this rank
  std::vector<Vertex> ran_;
  std::vector<Came> came_;
};

}  // namespace capo::run
