// A course runs a step on paper, piece of work by piece of work, and tells which events are over
// before which others.
//
// Two ways lead to one sequence of events: the orders alone, which run each rank on one stream, and
// the task graph, which also has transfers and further streams; a third, without a graph, is
// swept_course.h. Events come in one order in which
// they could happen; clocks tell which other orders are possible.
//
//   rank 0: F1 B1 on one stream   ->   work(F1) at position 1, work(B1) at position 2
//
// A clock holds, for each stream, how much of it is over for certain. Each vertex that waits has
// one, joined from its predecessors and released when the vertex has run, so memory goes with the
// work in flight, and time with edges times streams. Durations do not occur here (sim/). Tested by
// course_test.cpp.

#pragma once

#include "core/graph/lowered.h"
#include "core/graph/stage_map.h"
#include "core/graph/task_graph.h"
#include "core/plan/buffers.h"
#include "core/plan/work.h"

#include <cstdint>
#include <span>
#include <vector>

namespace capo {

/// A place in the course: positions of a stream count from 1, and members of a composite share one.
struct Point {
  std::uint32_t stream = 0;
  std::uint32_t position = 0;

  friend bool operator==(const Point&, const Point&) = default;
};

/// A clock tells how much of each stream is over for certain before the event at hand.
class Clock {
 public:
  /// `own` is the place of the event: everything before it on its own stream is over.
  Clock(const std::int32_t* over, Point own) : over_(over), own_(own) {}

  [[nodiscard]] bool after(Point point) const {
    if (point.stream == own_.stream) return point.position < own_.position;
    return over_ != nullptr && over_[point.stream] >= static_cast<std::int32_t>(point.position);
  }
  [[nodiscard]] Point now() const { return own_; }

 private:
  const std::int32_t* over_;  // null if there are no other streams
  Point own_;
};

/// A send reads a stage's output or gradient for another rank.
struct Sending {
  std::int32_t rank = 0;
  std::int32_t chunk = 0;  ///< its output or grad input is sent
  std::int32_t microbatch = 0;
  std::uint32_t entry = 0;  ///< the send in the rank's order, or the entry that it was added for
  Kind kind = Kind::SendForward;
  Point received;  ///< the data has arrived there, so that the send no longer reads it
};

/// A receive writes what a stage reads, from its start on.
struct Receiving {
  std::int32_t rank = 0;
  std::int32_t chunk = 0;  ///< it reads what is received
  std::int32_t microbatch = 0;
  std::uint32_t entry = 0;  ///< the receive in the rank's order, or the entry it was added for
  Kind kind = Kind::ReceiveForward;
};

class CourseVisitor {
 public:
  virtual ~CourseVisitor() = default;
  /// `fed_by` is the buffer that it reads of the stage before it, if that is on the same rank; else
  /// kNoBuffer.
  virtual void work(std::int32_t rank, const Work& work, BufferId fed_by, const Clock& clock) = 0;
  /// Comes when the send is over.
  virtual void sent(const Sending& sending, const Clock& clock) = 0;
  /// Comes when the receive begins.
  virtual void receiving(const Receiving& receiving, const Clock& clock);
};

/// The buffer of a neighbour on the same rank that a forward or backward reads; else kNoBuffer.
[[nodiscard]] BufferId fed_by(const BufferTable& table, const StageMap& map, std::int32_t rank,
                              const Work& work);

/// Runs the orders rank by rank, each on one stream.
void run_orders(const BufferTable& table, const StageMap& map,
                const std::vector<std::vector<Work>>& work, CourseVisitor& visitor);

/// Runs a task graph that finishes; `delay` lists every rank's chunks.
void run_graph(const BufferTable& table, const StageMap& map, const TaskGraph& graph,
               const Lowered& lowered, const std::vector<std::vector<Delay>>& delay,
               CourseVisitor& visitor);

}  // namespace capo
