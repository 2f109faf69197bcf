// Laws of every simulation, whatever the schedule and the costs: for each name of the catalogue
// over a grid, with costs by chance, under each way for messages to travel.

#include "core/order/fuse_weights.h"
#include "sim/simulate.h"
#include "tests/sim/published_requests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

namespace capo {
namespace {

using namespace published_requests;

/// What rounding may make of a time.
double hair(double of) {
  return 1e-9 * std::max(1.0, std::abs(of));
}

/// Messages that take latency and bytes/bandwidth.
SimulationOptions across(Links links) {
  Costs costs;
  costs.set({.key = CostSetting::Key::Bandwidth, .value = 4});
  costs.set({.key = CostSetting::Key::Bytes, .value = 6});
  return simulated::over(links, std::move(costs));
}

void look_at(const Request& request, const SimulationOptions& options,
             const std::function<void(const Simulation&)>& look) {
  SCOPED_TRACE(words_for(request));
  const auto simulated = simulate_request(request, options);
  ASSERT_NE(simulated->simulation, nullptr) << simulated->why;
  look(**simulated);
}

/// Calls `look` for every request, simulated with `options`.
void for_every_simulation(const SimulationOptions& options,
                          const std::function<void(const Simulation&)>& look) {
  for (const Request& request : every_request()) look_at(request, options, look);
}

/// With one way for messages to travel after the other.
void for_every_simulation(const std::function<void(const Simulation&)>& look) {
  std::size_t turn = 0;
  for (const Request& request : every_request()) {
    constexpr std::array kLinks{Links::Ideal, Links::Rendezvous, Links::Buffered};
    const Links links = kLinks[turn++ % kLinks.size()];
    SCOPED_TRACE(name_of(links));
    look_at(request, across(links), look);
  }
}

TEST(SimulationLaws, TimeNeverRunsBackwards) {
  for_every_simulation([](const Simulation& simulation) {
    const TaskGraph& graph = simulation.graph();
    const TaskTimes& times = simulation.times();
    const Durations durations(simulation.subject(), simulation.costs());
    for (Vertex from = 0; from < graph.task_of.size(); ++from) {
      EXPECT_GE(times.at[from].begin, 0);
      EXPECT_EQ(times.at[from].done, times.at[from].begin + durations.of(from));
      graph.edges.for_each_out(from, [&](Vertex to, EdgeKind kind) {
        const double lag = durations.lag(kind, from, to);
        EXPECT_GE(lag, 0);
        EXPECT_GE(times.at[to].begin, times.at[from].done + lag);
      });
    }
  });
}

/// Nothing begins later than it must: whatever it waited for last had just come.
TEST(SimulationLaws, EverythingBeginsAsSoonAsItCan) {
  for_every_simulation([](const Simulation& simulation) {
    const TaskGraph& graph = simulation.graph();
    const TaskTimes& times = simulation.times();
    const Durations durations(simulation.subject(), simulation.costs());
    std::vector<double> there(graph.task_of.size(), 0);
    for (Vertex from = 0; from < graph.task_of.size(); ++from) {
      graph.edges.for_each_out(from, [&](Vertex to, EdgeKind kind) {
        const double lag = durations.lag(kind, from, to);
        if (times.bound_by[to] == from) there[to] = std::max(there[to], times.at[from].done + lag);
      });
    }
    for (Vertex vertex = 0; vertex < there.size(); ++vertex)
      EXPECT_EQ(times.at[vertex].begin, there[vertex]);
  });
}

TEST(SimulationLaws, TheMakespanIsNoShorterThanItsCriticalPath) {
  for_every_simulation([](const Simulation& simulation) {
    const TaskGraph& graph = simulation.graph();
    const TaskTimes& times = simulation.times();
    const auto path = critical_path(simulation.subject(), times);
    ASSERT_FALSE(path.empty());
    EXPECT_EQ(times.start_of(graph, path.front()), 0);
    EXPECT_EQ(times.end_of(graph, path.back()), simulation.makespan());
    // A transfer can be on the path with its start alone, which takes no time.
    double computed = 0;
    for (const TaskId task : path) {
      const double takes = times.end_of(graph, task) - times.start_of(graph, task);
      if (is_compute(graph.tasks[task].kind)) computed += takes;
    }
    EXPECT_LE(computed, simulation.makespan() + hair(simulation.makespan()));
  });
}

TEST(SimulationLaws, NothingIsFasterThanItsBounds) {
  for_every_simulation([](const Simulation& simulation) {
    const double makespan = simulation.makespan();
    EXPECT_LE(simulation.span(), makespan);
    EXPECT_LE(simulation.bounds().makespan.value, makespan + hair(makespan));
    EXPECT_LE(simulation.bounds().span.value, simulation.span() + hair(makespan));
    EXPECT_GT(simulation.bounds().span.value, 0);
  });
}

/// A bound holds for composites that overlap as well.
TEST(SimulationLaws, NothingOverlappedIsFasterThanItsBounds) {
  SimulationOptions options;
  options.costs.overlap = 0.7;
  for_every_simulation(options, [](const Simulation& simulation) {
    const double makespan = simulation.makespan();
    EXPECT_LE(simulation.bounds().makespan.value, makespan + hair(makespan));
    EXPECT_LE(simulation.bounds().span.value, simulation.span() + hair(makespan));
  });
}

/// A bound holds for weight gradients in calls of several, whether these take less or more.
TEST(SimulationLaws, NothingFusedIsFasterThanItsBounds) {
  std::size_t fused = 0;
  for (const double share : {0.3, 1.0, 1.7}) {
    SimulationOptions options;
    options.costs.set({.key = CostSetting::Key::Fuse, .value = share});
    for (const Request& request : every_request()) {
      SCOPED_TRACE(words_for(request));
      const auto apart = simulate_request(request, options);
      Input input = apart->input;
      if (fuse_weights(input.schedule, 3).calls == 0) continue;
      ++fused;
      const auto simulated = simulated::simulate_input(std::move(input), apart->options);
      ASSERT_NE(simulated->simulation, nullptr) << simulated->why;
      const Simulation& simulation = **simulated;
      EXPECT_LE(simulation.bounds().makespan.value,
                simulation.makespan() + hair(simulation.makespan()));
      EXPECT_LE(simulation.bounds().span.value, simulation.span() + hair(simulation.makespan()));
    }
  }
  EXPECT_GT(fused, 100u);
}

TEST(SimulationLaws, ARankComputesOrIsIdle) {
  for_every_simulation([](const Simulation& simulation) {
    const double makespan = simulation.makespan();
    for (const RankTimes& rank : simulation.ranks()) {
      EXPECT_NEAR(rank.busy + rank.bubble, makespan, hair(makespan));
      EXPECT_LE(rank.first, rank.last);
      EXPECT_LE(rank.last, makespan);
      EXPECT_LE(rank.busy, rank.last - rank.first + hair(makespan));
      EXPECT_LE(rank.exposed, rank.bubble + hair(makespan));
    }
  });
}

TEST(SimulationLaws, TheBubbleIsTheSumOfTheIdleIntervals) {
  for_every_simulation([](const Simulation& simulation) {
    for (const RankTimes& rank : simulation.ranks()) {
      double idle = 0;
      double exposed = 0;
      double until = 0;
      for (const Idle& interval : rank.idle) {
        EXPECT_LE(until, interval.begin);
        EXPECT_LT(interval.begin, interval.end);
        EXPECT_GE(interval.exposed, 0);
        EXPECT_LE(interval.exposed, interval.end - interval.begin);
        EXPECT_EQ(interval.cause == Idle::Cause::WarmUp, interval.end == rank.first);
        EXPECT_EQ(interval.cause == Idle::Cause::Drain, interval.begin == rank.last);
        until = interval.end;
        idle += interval.end - interval.begin;
        exposed += interval.exposed;
      }
      EXPECT_LE(until, simulation.makespan());
      EXPECT_NEAR(idle, rank.bubble, hair(rank.bubble));
      EXPECT_NEAR(exposed, rank.exposed, hair(rank.exposed));
    }
  });
}

void expect_sound_course(const std::vector<MemoryStep>& course, double chunk) {
  ASSERT_FALSE(course.empty());
  EXPECT_NEAR(course.front().held, chunk, 1e-9);  // the first forward's, from nothing
  EXPECT_NEAR(course.back().held, 0, 1e-9);
  EXPECT_EQ(course.back().microbatches, 0);
  double time = 0;
  for (const MemoryStep& step : course) {
    EXPECT_GE(step.time, time);
    EXPECT_GE(step.held, -1e-9);
    EXPECT_EQ(step.microbatches > 0, step.held > 1e-9);
    time = step.time;
  }
}

TEST(SimulationLaws, WhatIsHeldIsGivenUp) {
  for (const MemoryChange& memory :
       {MemoryChange{.forward = 1, .backward = 0, .weight = -1},
        MemoryChange{.forward = 1, .backward = -0.7, .weight = -0.3}}) {
    for_every_simulation({.memory = memory}, [](const Simulation& simulation) {
      const Schedule& schedule = simulation.subject().schedule;
      const auto& ranks = schedule.ranks;
      // Of two pipelines a microbatch is in one, and passes half of a rank's chunks.
      const std::int32_t pipelines = schedule.topology == Topology::Bidirectional ? 2 : 1;
      for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        const auto course = simulation.memory_course(static_cast<std::int32_t>(rank));
        expect_sound_course(course, 1.0 * pipelines / ranks[rank].chunks);
        const MemoryPeak& peak = simulation.peaks()[rank];
        for (const MemoryStep& step : course) EXPECT_LE(step.held, peak.held);
        EXPECT_LE(peak.microbatches, simulation.microbatches() * pipelines);
      }
    });
  }
}

/// `later` ran the same graph, and did so as fast or slower.
void expect_no_sooner(const TaskTimes& later, const TaskTimes& sooner) {
  ASSERT_EQ(later.at.size(), sooner.at.size());
  for (std::size_t vertex = 0; vertex < later.at.size(); ++vertex) {
    EXPECT_GE(later.at[vertex].begin, sooner.at[vertex].begin - hair(sooner.at[vertex].begin));
    EXPECT_GE(later.at[vertex].done, sooner.at[vertex].done - hair(sooner.at[vertex].done));
  }
  EXPECT_GE(later.makespan, sooner.makespan - hair(sooner.makespan));
}

std::vector<std::int32_t> a_device_each(const Simulation& simulation) {
  std::vector<std::int32_t> devices(simulation.subject().schedule.ranks.size());
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

TEST(SimulationLaws, BothWaysOfRunningGiveTheSameTimes) {
  for_every_simulation([](const Simulation& simulation) {
    const Subject& subject = simulation.subject();
    Costs costs = simulation.costs();
    const Durations durations(subject, costs);
    const TaskTimes freely = run_freely(subject, durations);
    for (const auto& devices : {std::vector<std::int32_t>{}, a_device_each(simulation)}) {
      costs.devices = devices;
      const TaskTimes shared = run_shared(subject, durations, costs);
      EXPECT_NEAR(shared.makespan, freely.makespan, hair(freely.makespan));
      ASSERT_EQ(shared.at.size(), freely.at.size());
      for (std::size_t vertex = 0; vertex < freely.at.size(); ++vertex) {
        EXPECT_NEAR(shared.at[vertex].begin, freely.at[vertex].begin,
                    hair(freely.at[vertex].begin));
        EXPECT_NEAR(shared.at[vertex].done, freely.at[vertex].done, hair(freely.at[vertex].done));
      }
    }
  });
}

// Orders are fixed, so each task begins when the last of what it waits for is there or later, and
// takes its time or longer: by induction along the edges nothing can be sooner than where no task
// slows another down. Two runs that share devices say nothing about each other, see
// SharedDevicesCanGainFromALongerTask.
TEST(SimulationLaws, SlowingDownMakesNothingFaster) {
  for_every_simulation([](const Simulation& simulation) {
    Costs costs = simulation.costs();
    const Durations durations(simulation.subject(), costs);
    costs.slowdown = 1.4;
    expect_no_sooner(run_shared(simulation.subject(), durations, costs), simulation.times());
    costs.slowdown = 1;
    costs.crowded = 1.3;
    expect_no_sooner(run_shared(simulation.subject(), durations, costs), simulation.times());
  });
}

TEST(SimulationLaws, SharingDevicesMakesNothingFaster) {
  for_every_simulation([](const Simulation& simulation) {
    Costs costs = simulation.costs();
    const Durations durations(simulation.subject(), costs);
    for (const double slowdown : {1.0, 1.4}) {
      costs.slowdown = slowdown;
      costs.devices = a_device_each(simulation);
      for (std::int32_t& device : costs.devices) device /= 2;
      expect_no_sooner(run_shared(simulation.subject(), durations, costs), simulation.times());
    }
  });
}

/// A longer forward on rank 2 lets others have more of the device before.
TEST(SimulationLaws, SharedDevicesCanGainFromALongerTask) {
  const Request request{.name = "1f1b",
                        .ranks = 4,
                        .microbatches = 3,
                        .costs = {.forward = 1, .backward = 1, .weight = 1, .transfer = 3}};
  SimulationOptions options;
  declare_costs(request, options.costs);
  options.costs.devices = {0, 0, 0, 0};
  EXPECT_EQ((*simulated::simulate_named(request, options))->makespan(), 47.5);
  options.costs.set({.scope = {.rank = 2}, .key = CostSetting::Key::Forward, .value = 2});
  EXPECT_EQ((*simulated::simulate_named(request, options))->makespan(), 46);
}

}  // namespace
}  // namespace capo
