// A course by sweep: its clocks of work know exactly what the task graph's do, and those of
// transfers the computations of their rank; plans and hazards come out alike.

#include "core/plan/swept_course.h"
#include "tests/core/graph/random_schedule.h"
#include "tests/core/plan/planned.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace capo {
namespace {

using testing_support::as_vector;
using testing_support::PlannedStep;
using testing_support::random_schedule;
using testing_support::Shape;

using EventName = std::tuple<std::int32_t, Kind, std::uint32_t>;  // rank, kind, entry
using KnownBefore = std::map<EventName, std::set<EventName>>;     // what is over before each event

// Learns at which points events are over; asked a second time it notes what each clock knows.
class Learner final : public CourseVisitor {
 public:
  void work(std::int32_t rank, const Work& work, BufferId fed_by, const Clock& clock) override {
    const EventName name{rank, work.kind, work.entry};
    points_[name] = {clock.now(), clock.now()};
    fed[name] = fed_by;
    note(exact, name, clock, [](Kind kind) { return !is_receive(kind); });
    note(at_most, name, clock, is_receive);
  }
  void sent(const Sending& sending, const Clock& clock) override {
    const EventName name{sending.rank, sending.kind, sending.entry};
    points_[name] = {clock.now(), sending.received};
    note_transfer(name, clock);
  }
  void receiving(const Receiving& receiving, const Clock& clock) override {
    const EventName name{receiving.rank, receiving.kind, receiving.entry};
    points_[name] = {clock.now(), clock.now()};
    note_transfer(name, clock);
  }

  KnownBefore exact;    ///< for work: work and sends; for transfers: work
  KnownBefore at_most;  ///< the rest, of which a sweep may know less
  std::map<EventName, BufferId> fed;

 private:
  void note_transfer(const EventName& name, const Clock& clock) {
    note(exact, name, clock, is_compute);
    note(at_most, name, clock, is_transfer);
  }
  template <typename Which>
  void note(KnownBefore& over, const EventName& name, const Clock& clock, Which which) {
    std::set<EventName>& known = over[name];
    for (const auto& [other, points] : points_) {
      const bool asked = std::get<0>(other) == std::get<0>(name) && which(std::get<1>(other));
      if (asked && (clock.after(points.first) || clock.after(points.second))) known.insert(other);
    }
  }

  std::map<EventName, std::pair<Point, Point>> points_;
};

Learner learned(const PlannedStep& step, const Course& course) {
  Learner learner;
  run_course(step.table(), course, learner);
  learner.exact.clear();
  learner.at_most.clear();
  run_course(step.table(), course, learner);
  return learner;
}

std::string event_words(const EventName& name) {
  return std::to_string(std::get<0>(name)) + ":" +
         std::to_string(static_cast<int>(std::get<1>(name))) + "@" +
         std::to_string(std::get<2>(name));
}

struct SeenAlike {
  std::size_t courses = 0;
  std::size_t sends = 0;  ///< pairs of work and a send that is over
  std::size_t hazards = 0;
  std::size_t hurt = 0;  ///< courses with hazards
};

Course swept_course_of(const PlannedStep& step, const SweptTransfers& swept) {
  Course course{.map = &step.wiring().map(), .delay = &step.delay()};
  course.swept = std::make_shared<const SweptCourse>(*course.map, swept, step.delay(),
                                                     step.wiring().swept_log());
  course.work = step.course().work;
  return course;
}

using HazardSet = std::multiset<std::tuple<EventName, EventName, bool, BufferId>>;

HazardSet hazard_set(const PlannedStep& step, const std::vector<Hazard>& hazards) {
  HazardSet found;
  for (const Hazard& of : hazards) {
    const Buffer& victim = of.victim;
    found.insert(
        {{of.writer.rank, of.writer.kind, of.writer.entry},
         {of.reader.rank, of.reader.kind, of.reader.entry},
         of.race,
         step.table().id(victim.rank, victim.chunk, victim.layer, victim.microbatch, victim.kind)});
  }
  return found;
}

void expect_alike(const PlannedStep& step, SeenAlike& seen) {
  const std::optional<SweptTransfers> swept = step.wiring().swept();
  if (!swept) return;
  const Course course = swept_course_of(step, *swept);
  const Learner by_graph = learned(step, step.course());
  const Learner by_sweep = learned(step, course);
  EXPECT_EQ(by_graph.fed, by_sweep.fed);
  ASSERT_EQ(by_graph.exact.size(), by_sweep.exact.size());
  for (const auto& [name, known] : by_graph.exact) {
    EXPECT_EQ(known, by_sweep.exact.at(name)) << event_words(name);
    for (const EventName& other : known) seen.sends += is_send(std::get<1>(other)) ? 1 : 0;
  }
  for (const auto& [name, known] : by_sweep.at_most) {
    const std::set<EventName>& more = by_graph.at_most.at(name);
    EXPECT_TRUE(std::includes(more.begin(), more.end(), known.begin(), known.end()))
        << event_words(name);
  }
  ++seen.courses;
  if (swept->layout == Communicators::PerRank) {
    const Plan one = step.plan(PlanKind::Safe);
    const Plan other = assign(step.table(), course, PlanKind::Safe);
    EXPECT_EQ(one.address, other.address);
    for (std::size_t r = 0; r < one.ranks.size(); ++r) {
      EXPECT_EQ(one.ranks[r].transfers, other.ranks[r].transfers);
      EXPECT_EQ(one.ranks[r].lower_bound, other.ranks[r].lower_bound);
    }
  }
  EXPECT_TRUE(judge(step.table(), course, assign(step.table(), course, PlanKind::Safe)).empty());
  const Plan te = step.plan(PlanKind::Te);
  const HazardSet hazards = hazard_set(step, step.hazards(te));
  const HazardSet by_sweep_found = hazard_set(step, as_vector(judge(step.table(), course, te)));
  EXPECT_EQ(hazards, by_sweep_found);
  seen.hazards += hazards.size();
  seen.hurt += hazards.empty() ? 0 : 1;
}

TEST(SweptCourse, OfRandomStepsKnowsWhatTheGraphKnows) {
  std::mt19937 random(11);
  SeenAlike seen;
  for (int run = 0; run < 60 && !testing::Test::HasFailure(); ++run) {
    for (const Topology topology : {Topology::Chain, Topology::Loop, Topology::V}) {
      const auto below = [&](std::uint32_t n) { return static_cast<std::int32_t>(random() % n); };
      const Shape shape{.ranks = 2 + below(4),
                        .chunks = topology == Topology::V ? 2 : 1 + below(3),
                        .microbatches = 1 + below(6),
                        .topology = topology,
                        .delay = below(3) == 0 ? Delay::Always : Delay::Never};
      const Schedule schedule = random_schedule(shape, random);
      for (const Communicators layout :
           {Communicators::PerRank, Communicators::PerPair, Communicators::PerEdge}) {
        for (const TransferMode mode : {TransferMode::Rendezvous, TransferMode::Buffered}) {
          const PlannedStep step(schedule, {}, {}, {.communicators = layout, .transfers = mode});
          expect_alike(step, seen);
          if (HasFailure()) {
            std::printf("%d ranks, %d chunks, %d microbatches, %s, %s, %s\n", shape.ranks,
                        shape.chunks, shape.microbatches, name_of(topology).data(),
                        name_of(layout).data(), name_of(mode).data());
            return;
          }
        }
      }
    }
  }
  std::printf("%zu courses, %zu sends over before work, %zu hazards in %zu courses\n", seen.courses,
              seen.sends, seen.hazards, seen.hurt);
  EXPECT_GT(seen.courses, 600U);
  EXPECT_GT(seen.hurt, 100U);
}

}  // namespace
}  // namespace capo
