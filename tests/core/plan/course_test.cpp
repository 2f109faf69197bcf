// The course of a step: every event once, in an order in which it could happen, with clocks that
// know exactly what a path in the task graph leads from.

#include "core/plan/course.h"
#include "tests/core/graph/order_text.h"
#include "tests/core/graph/random_schedule.h"
#include "tests/core/plan/happens_before.h"
#include "tests/core/plan/planned.h"

#include <gtest/gtest.h>
#include "core/frameworks/megatron/orders.h"

#include <cstdio>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace capo {
namespace {

using testing_support::HappensBefore;
using testing_support::PlannedStep;
using testing_support::random_schedule;
using testing_support::read_schedule;

struct Event {
  bool send = false;
  std::int32_t rank = 0;
  Work work;
  Sending sending;
  BufferId fed_by = kNoBuffer;
  Point now;
  std::vector<std::pair<Point, bool>> after;  ///< of every point that was asked for
};

class Recorder final : public CourseVisitor {
 public:
  /// Asks every clock about these.
  explicit Recorder(std::vector<Point> points) : points_(std::move(points)) {}

  void work(std::int32_t rank, const Work& work, BufferId fed_by, const Clock& clock) override {
    events.push_back({.rank = rank, .work = work, .fed_by = fed_by, .now = clock.now()});
    ask(clock);
  }
  void sent(const Sending& sending, const Clock& clock) override {
    events.push_back({.send = true, .rank = sending.rank, .sending = sending, .now = clock.now()});
    ask(clock);
  }

  std::vector<Event> events;

 private:
  void ask(const Clock& clock) {
    for (const Point point : points_) events.back().after.emplace_back(point, clock.after(point));
  }

  std::vector<Point> points_;
};

// Which task has which place on which stream; members of a composite or fused group share one.
std::vector<std::vector<std::vector<TaskId>>> places_of(const TaskGraph& graph) {
  std::vector<std::vector<std::vector<TaskId>>> places(graph.streams.size());
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    auto& of_stream = places[graph.tasks[id].stream];
    const bool shares =
        !of_stream.empty() && graph.tasks[of_stream.back().front()].start == graph.tasks[id].start;
    if (!shares) of_stream.emplace_back();
    of_stream.back().push_back(id);
  }
  return places;
}

class CourseOfAGraph {
 public:
  explicit CourseOfAGraph(const PlannedStep& step)
      : step_(step),
        graph_(*step.course().graph),
        places_(places_of(graph_)),
        closure_(graph_),
        recorder_(all_points()) {
    run_course(step.table(), step.course(), recorder_);
  }

  void expect_every_event_once() const {
    std::set<TaskId> seen;
    for (const Event& event : recorder_.events) {
      const TaskId id = task_of(event);
      ASSERT_NE(id, kNoTask) << "an event that no task is";
      EXPECT_TRUE(seen.insert(id).second) << "twice: task " << id;
    }
    std::size_t expected = 0;
    for (const Task& task : graph_.tasks) {
      expected += is_work(step_of(*step_.course().lowered, task)) || is_send(task.kind) ? 1U : 0U;
    }
    EXPECT_EQ(seen.size(), expected);
  }

  void expect_an_order_that_could_happen() const {
    const auto& events = recorder_.events;
    for (std::size_t i = 0; i < events.size(); ++i) {
      for (std::size_t j = i + 1; j < events.size(); ++j) {
        EXPECT_FALSE(closure_.reaches(end_of(events[j]), end_of(events[i])))
            << "event " << j << " comes before event " << i;
      }
    }
  }

  /// What every clock says of every point is what the paths say.
  void expect_clocks_that_know_the_paths() {
    for (const Event& event : recorder_.events) {
      for (const auto& [point, after] : event.after) {
        const TaskId there = places_[point.stream][point.position - 1].front();
        ++(after ? befores : others);
        ASSERT_EQ(after, closure_.reaches(graph_.end(there), end_of(event)))
            << "task " << there << " before task " << task_of(event);
      }
    }
  }

  void expect_sends_that_know_where_they_arrive() const {
    for (const Event& event : recorder_.events) {
      if (!event.send) continue;
      const Task& send = graph_.tasks[task_of(event)];
      const std::int32_t there = step_.wiring().map().neighbour(send.kind, send.stage);
      const Point at = event.sending.received;
      bool found = false;
      for (const TaskId id : places_[at.stream][at.position - 1]) {
        const Task& task = graph_.tasks[id];
        found = found || (task.kind == other_end(send.kind) && task.stage == there &&
                          task.microbatch == send.microbatch);
      }
      EXPECT_TRUE(found) << "of send " << task_of(event);
    }
  }

  std::size_t befores = 0;
  std::size_t others = 0;

 private:
  [[nodiscard]] std::vector<Point> all_points() const {
    std::vector<Point> points;
    for (std::uint32_t s = 0; s < places_.size(); ++s) {
      for (std::uint32_t p = 1; p <= places_[s].size(); ++p) points.push_back({s, p});
    }
    return points;
  }

  [[nodiscard]] TaskId task_of(const Event& event) const {
    for (const TaskId id : places_[event.now.stream][event.now.position - 1]) {
      const Task& task = graph_.tasks[id];
      const Step& step = step_of(*step_.course().lowered, task);
      if (task.rank != event.rank) continue;
      if (event.send) {
        const Sending& sent = event.sending;
        if (task.kind == sent.kind && step.chunk == sent.chunk &&
            task.microbatch == sent.microbatch && step.entry == sent.entry) {
          return id;
        }
      } else if (is_work(step)) {
        const Work work = work_of(step, step_.delay()[static_cast<std::size_t>(event.rank)]);
        if (work.kind == event.work.kind && work.chunk == event.work.chunk &&
            work.microbatch == event.work.microbatch && work.layer == event.work.layer) {
          return id;
        }
      }
    }
    return kNoTask;
  }
  [[nodiscard]] Vertex end_of(const Event& event) const { return graph_.end(task_of(event)); }

  const PlannedStep& step_;
  const TaskGraph& graph_;
  std::vector<std::vector<std::vector<TaskId>>> places_;  // by stream and position
  HappensBefore closure_;
  Recorder recorder_;
};

struct Seen {
  std::size_t courses = 0;
  std::size_t befores = 0;
  std::size_t others = 0;
};

void expect_course(const PlannedStep& step, Seen& seen) {
  CourseOfAGraph course(step);
  course.expect_every_event_once();
  if (::testing::Test::HasFatalFailure()) return;
  course.expect_an_order_that_could_happen();
  course.expect_clocks_that_know_the_paths();
  course.expect_sends_that_know_where_they_arrive();
  ++seen.courses;
  seen.befores += course.befores;
  seen.others += course.others;
}

std::vector<Environment> environments() {
  std::vector<Environment> all;
  for (const Communicators communicators :
       {Communicators::PerRank, Communicators::PerPair, Communicators::PerEdge}) {
    for (const TransferMode mode : {TransferMode::Rendezvous, TransferMode::Buffered}) {
      for (const bool weight_stream : {false, true}) {
        all.push_back(
            {.communicators = communicators, .transfers = mode, .weight_stream = weight_stream});
      }
    }
  }
  return all;
}

TEST(Course, OfRandomStepsHasTheClocksThatThePathsSay) {
  std::mt19937 random(4);
  Seen seen;
  for (int run = 0; run < 12; ++run) {
    for (const Topology topology : {Topology::Chain, Topology::Loop, Topology::V}) {
      const auto below = [&](std::uint32_t n) { return static_cast<std::int32_t>(random() % n); };
      const testing_support::Shape shape{.ranks = 1 + below(3),
                                         .chunks = topology == Topology::V ? 2 : 1 + below(2),
                                         .microbatches = 1 + below(3),
                                         .topology = topology,
                                         .delay = below(3) == 0 ? Delay::Never : Delay::Always};
      const Schedule schedule = random_schedule(shape, random);
      for (const Environment& environment : environments()) {
        const PlannedStep step(schedule, {}, {}, environment);
        if (step.course().graph == nullptr) continue;
        expect_course(step, seen);
        if (HasFatalFailure()) return;
      }
    }
  }
  std::printf("%zu courses; of %zu pairs of events %zu are ordered\n", seen.courses,
              seen.befores + seen.others, seen.befores);
  EXPECT_GT(seen.courses, 200U);
  EXPECT_GT(seen.others, seen.befores / 4) << "much is not ordered";
}

// Fused groups of transfers, waits, and forward beside backward.
TEST(Course, OfMegatronsCallsHasTheClocksThatThePathsSay) {
  Seen seen;
  for (const MegatronCalls calls :
       {MegatronCalls::Batch, MegatronCalls::Overlap, MegatronCalls::Flush}) {
    for (const bool overlap : {false, true}) {
      megatron::Request request{.which = megatron::Which::Runtime};
      request.configuration = {.pipeline = 2, .virtual_stages = 2, .microbatches = 4};
      request.configuration.ep_overlap = overlap;
      const Schedule schedule = megatron::schedule_of(megatron::orders_of(request).value());
      const PlannedStep step(schedule, {}, {},
                             {.communicators = Communicators::PerPair,
                              .transfers = TransferMode::Buffered,
                              .p2p = calls,
                              .ep_overlap = overlap});
      if (!step.wiring().execution().finishes()) continue;
      expect_course(step, seen);
    }
  }
  EXPECT_GE(seen.courses, 4U);
}

// Layers taken apart: exchanges meet on streams of their own.
TEST(Course, OfLayersTakenApartHasTheClocksThatThePathsSay) {
  Schedule schedule = read_schedule(
      "ranks 2\nmicrobatches 2\nplacement loop\n"
      "rank 0: F1.0 (F1.1 B1.0) B1.1\nrank 1: F1.0 (F1.1 B1.0) B1.1\n");
  schedule.topology = Topology::Independent;
  for (RankOrder& rank : schedule.ranks) {
    rank.layers = {.form = Layers::Form::Count, .values = {2}};
  }
  const std::vector<CollectiveGroup> experts{
      {.name = "experts",
       .members = {0, 1},
       .actions = {Kind::DispatchForward, Kind::CombineForward, Kind::DispatchBackward,
                   Kind::CombineBackward}}};
  const PlannedStep step(schedule, {}, {}, {.ep_overlap = true}, experts);
  ASSERT_NE(step.course().graph, nullptr);
  ASSERT_TRUE(step.wiring().execution().finishes());
  Seen seen;
  expect_course(step, seen);
  EXPECT_EQ(seen.courses, 1U);
  EXPECT_EQ(step.course().work[0].size(), 8U) << "four pieces of two layers";
}

std::vector<Event> events_of(const PlannedStep& step) {
  Recorder recorder({});
  run_course(step.table(), step.course(), recorder);
  return recorder.events;
}

TEST(Course, OfOrdersAloneGoesRankByRankOnOneStreamEach) {
  const PlannedStep step(
      read_schedule("ranks 2\nmicrobatches 2\n"
                    "rank 0: F1.0 (F1.1 B1.0) B1.1\n"
                    "rank 1: F1.0 B1.0 F1.1 B1.1\n"));
  ASSERT_EQ(step.course().graph, nullptr);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> points;
  for (const Event& event : events_of(step)) {
    EXPECT_FALSE(event.send);
    EXPECT_EQ(event.fed_by, kNoBuffer) << "chunks are not wired";
    points.emplace_back(event.now.stream, event.now.position);
  }
  EXPECT_EQ(points, (std::vector<std::pair<std::uint32_t, std::uint32_t>>{
                        {0, 1}, {0, 2}, {0, 2}, {0, 3}, {1, 1}, {1, 2}, {1, 3}, {1, 4}}))
      << "members of a composite share a place";
}

TEST(Course, OfOneStreamHasAClockThatKnowsItsPlace) {
  const Clock clock(nullptr, {.stream = 1, .position = 5});
  EXPECT_TRUE(clock.after({.stream = 1, .position = 4}));
  EXPECT_FALSE(clock.after({.stream = 1, .position = 5})) << "it is not over itself";
  EXPECT_FALSE(clock.after({.stream = 1, .position = 6}));
  EXPECT_FALSE(clock.after({.stream = 0, .position = 1})) << "of others it knows nothing";
}

// A chain of two chunks of two layers and of one, on one rank.
TEST(Course, KnowsWhatAStageReadsOfAnotherOnItsRank) {
  Schedule schedule = read_schedule(
      "ranks 1\nmicrobatches 1\nplacement chain\nchunks 2\n"
      "rank 0: F1.0 F2.0 B2.0 B1.0 W2.0 W1.0\n");
  schedule.ranks[0].layers = {.form = Layers::Form::List, .values = {2, 1}};
  const PlannedStep step(schedule);
  std::vector<Buffer> read;
  for (const Event& event : events_of(step)) {
    if (event.fed_by != kNoBuffer) read.push_back(step.table().at(event.fed_by));
  }
  EXPECT_EQ(read, (std::vector<Buffer>{
                      {.chunk = 1, .layer = 1, .kind = BufferKind::Output},
                      {.chunk = 2, .layer = 0, .kind = BufferKind::GradInput},
                  }));
}

// Its own gradient comes from behind it all the same.
TEST(Course, ReadsNothingOfAChunkWithoutLayers) {
  Schedule schedule = read_schedule(
      "ranks 1\nmicrobatches 1\nplacement chain\nchunks 2\nrank 0: F1.0 F2.0 B2.0 B1.0\n");
  schedule.ranks[0].layers = {.form = Layers::Form::List, .values = {0, 1}};
  const PlannedStep step(schedule);
  for (const Event& event : events_of(step)) {
    const bool last = event.work.kind == Kind::Backward && event.work.chunk == 1;
    EXPECT_EQ(event.fed_by != kNoBuffer, last);
  }
}

TEST(Course, ASendIsReceivedWhereItsOwnMessageIsOfSeveralThatAreFused) {
  for (const char* ranks :
       {"rank 0: F1.0 F1.1 (send-F1.0 send-F1.1) F2.0 F2.1 B2.0 B2.1 B1.0 B1.1\n"
        "rank 1: recv-F1.0 recv-F1.1 F1.0 F1.1 F2.0 F2.1 B2.0 B2.1 B1.0 B1.1\n",
        "rank 0: F1.0 F2.0 (send-F1.0 send-F2.0) B2.0 B1.0\n"
        "rank 1: recv-F1.0 recv-F2.0 F1.0 F2.0 B2.0 B1.0\n"}) {
    const PlannedStep step(
        read_schedule(std::string("ranks 2\nmicrobatches 2\nplacement loop\n") + ranks));
    Recorder recorder({});
    run_course(step.table(), step.course(), recorder);
    std::vector<std::uint32_t> received;
    for (const Event& event : recorder.events) {
      if (event.send) received.push_back(event.sending.received.position);
    }
    ASSERT_EQ(received.size(), 2u);
    EXPECT_LT(received[0], received[1]);
  }
}

}  // namespace
}  // namespace capo
