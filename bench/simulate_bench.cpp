// Measures how fast a step is lowered and simulated, and how the time per task grows.
//
//   ./dev bench --benchmark_filter=Simulate
//
// The schedule is interleaved 1F1B, 64 ranks of two chunks; with transfers put in, 512 microbatches
// make 391,168 tasks and 13,120 make ten million. `LowerAndSimulate` is from the schedule to the
// timeline: transfers put in, the task graph, all times. `Simulate` is the times alone, and
// `SimulateShared` finds them by events in the order of time. `Sweep` is one point of the grid of
// `capo sweep`: a schedule of about 6,000 tasks from its name to its figures, the check of the
// verifier included.

#include "core/graph/build.h"
#include "core/graph/lowered.h"
#include "schedules/catalogue.h"
#include "sim/simulate.h"
#include "sim/simulation.h"

#include <benchmark/benchmark.h>

#include <cstdint>
#include <optional>

namespace {

constexpr std::int32_t kRanks = 64;

capo::Schedule schedule_of(std::int64_t microbatches) {
  return *capo::schedules::schedule_named(
      {.name = "1f1b-interleaved",
       .ranks = kRanks,
       .microbatches = static_cast<std::int32_t>(microbatches)});
}

/// A schedule with its transfers, as a task graph.
struct Wired {
  explicit Wired(const capo::Schedule& of, std::int32_t microbatches)
      : schedule(of),
        map(of),
        lowered(capo::add_transfers(of, map, microbatches).lowered),
        graph(capo::wire_transfers(lowered, map, microbatches, {}).graph) {}

  [[nodiscard]] capo::Subject subject() const {
    return {.schedule = schedule,
            .map = map,
            .lowered = lowered,
            .graph = graph,
            .links = capo::Links::Rendezvous};
  }

  const capo::Schedule& schedule;
  capo::StageMap map;
  capo::Lowered lowered;
  capo::TaskGraph graph;
};

capo::Costs costs() {
  capo::Costs costs;
  costs.set({.key = capo::CostSetting::Key::Latency, .value = 0.1});
  return costs;
}

void report(benchmark::State& state, std::size_t tasks) {
  const auto done = static_cast<double>(state.iterations()) * static_cast<double>(tasks);
  state.counters["tasks"] = static_cast<double>(tasks);
  state.counters["tasks_a_second"] = benchmark::Counter(done, benchmark::Counter::kIsRate);
  state.counters["per_task"] =
      benchmark::Counter(done, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void LowerAndSimulate(benchmark::State& state) {
  const auto microbatches = static_cast<std::int32_t>(state.range(0));
  const capo::Schedule schedule = schedule_of(microbatches);
  const capo::Costs given = costs();
  std::size_t tasks = 0;
  for (auto _ : state) {
    const Wired wired(schedule, microbatches);
    const capo::TaskTimes times = capo::simulate(wired.subject(), given);
    tasks = wired.graph.tasks.size();
    benchmark::DoNotOptimize(&times);
  }
  report(state, tasks);
}

void Simulate(benchmark::State& state) {
  const auto microbatches = static_cast<std::int32_t>(state.range(0));
  const capo::Schedule schedule = schedule_of(microbatches);
  const capo::Costs given = costs();
  const Wired wired(schedule, microbatches);
  for (auto _ : state) {
    const capo::TaskTimes times = capo::simulate(wired.subject(), given);
    benchmark::DoNotOptimize(&times);
  }
  report(state, wired.graph.tasks.size());
}

void SimulateShared(benchmark::State& state) {
  const auto microbatches = static_cast<std::int32_t>(state.range(0));
  const capo::Schedule schedule = schedule_of(microbatches);
  capo::Costs given = costs();
  given.slowdown = 1.2;
  const Wired wired(schedule, microbatches);
  for (auto _ : state) {
    const capo::TaskTimes times = capo::simulate(wired.subject(), given);
    benchmark::DoNotOptimize(&times);
  }
  report(state, wired.graph.tasks.size());
}

void Sweep(benchmark::State& state) {
  std::size_t tasks = 0;
  for (auto _ : state) {
    const capo::Input input{.form = capo::Form::OrderFile,
                            .schedule = *capo::schedules::schedule_named(
                                {.name = "zb-2p", .ranks = 16, .microbatches = 125})};
    const capo::SimulationOptions options{.costs = costs()};
    const auto simulation = capo::simulation_of(input, options);
    tasks = (*simulation)->graph().tasks.size();
    benchmark::DoNotOptimize(&simulation);
  }
  report(state, tasks);
}

BENCHMARK(LowerAndSimulate)->Arg(512)->Arg(13120)->Unit(benchmark::kMillisecond);
BENCHMARK(Simulate)->Arg(512)->Arg(13120)->Unit(benchmark::kMillisecond);
BENCHMARK(SimulateShared)->Arg(512)->Unit(benchmark::kMillisecond);
BENCHMARK(Sweep)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
