// A step run on paper, piece of work by piece of work, with what is over before what.
//
// Two ways to one sequence of events: the orders alone, where everything of a rank runs on one
// stream, and the task graph, where transfers and further streams run beside it. Events come in an
// order in which they could happen; what else could have happened is in the clocks.
//
// A clock holds, for each stream, how much of it is over for certain. There is one for each vertex
// that waits, joined from its predecessors and given up when it has run, so memory goes with what
// is in flight and time with edges times streams. Tested by course_test.cpp.

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

/// A place in the course: the how manyth of its stream, from 1. Members of a composite share it.
struct Point {
  std::uint32_t stream = 0;
  std::uint32_t position = 0;

  friend bool operator==(const Point&, const Point&) = default;
};

/// How much of each stream is over for certain before the event at hand.
class Clock {
 public:
  /// `own` is the event's: of its own stream all before it is over.
  Clock(const std::uint32_t* over, Point own) : over_(over), own_(own) {}

  [[nodiscard]] bool after(Point point) const {
    if (point.stream == own_.stream) return point.position < own_.position;
    return over_ != nullptr && over_[point.stream] >= point.position;
  }
  [[nodiscard]] Point now() const { return own_; }

 private:
  const std::uint32_t* over_;  // null: there are no other streams
  Point own_;
};

/// What reads a stage's output or gradient on another rank.
struct Sending {
  std::int32_t rank = 0;
  std::int32_t chunk = 0;  ///< whose output or grad input is sent
  std::int32_t microbatch = 0;
  std::uint32_t entry = 0;  ///< of the rank's order: the send, or what it was added for
  Kind kind = Kind::SendForward;
  Point received;  ///< where its data has arrived: from there on it is not read either
};

class CourseVisitor {
 public:
  virtual ~CourseVisitor() = default;
  /// `fed_by`: what it reads of the stage before it, where that is on the same rank; or kNoBuffer.
  virtual void work(std::int32_t rank, const Work& work, BufferId fed_by, const Clock& clock) = 0;
  /// When the send is over.
  virtual void sent(const Sending& sending, const Clock& clock) = 0;
};

/// Rank by rank, each on one stream.
void run_orders(const BufferTable& table, const StageMap& map,
                const std::vector<std::vector<Work>>& work, CourseVisitor& visitor);

/// `delay` of every rank's chunks.
void run_graph(const BufferTable& table, const StageMap& map, const TaskGraph& graph,
               const Lowered& lowered, const std::vector<std::vector<Delay>>& delay,
               CourseVisitor& visitor);

}  // namespace capo
