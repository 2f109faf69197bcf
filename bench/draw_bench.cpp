// Measures how fast a step is drawn, beside the time that its simulation takes.
//
//   ./dev bench --benchmark_filter=Draw
//
// The schedule is 1F1B on 16 ranks; 320 microbatches make 10,240 tasks and 31,250 a million.
// `DrawSimulated` is from the schedule to all times, which `DrawSvg`, `DrawPage` and
// `DrawPerfetto` begin with; `bytes` is the size of what they write.

#include "core/order/input.h"
#include "core/timeline/picture.h"
#include "schedules/catalogue.h"
#include "sim/simulation.h"

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace {

capo::Input input_of(std::int64_t microbatches) {
  capo::Input input;
  input.schedule = *capo::schedules::schedule_named(
      {.name = "1f1b", .ranks = 16, .microbatches = static_cast<std::int32_t>(microbatches)});
  return input;
}

capo::SimulationOptions options() {
  capo::SimulationOptions options;
  options.costs.set({.key = capo::CostSetting::Key::Latency, .value = 0.1});
  return options;
}

template <typename Render>
void draw(benchmark::State& state, Render render) {
  const capo::Input input = input_of(state.range(0));
  const capo::SimulationOptions given = options();
  std::size_t bytes = 0;
  std::size_t tasks = 0;
  for (auto _ : state) {
    const auto simulation = capo::simulation_of(input, given);
    tasks = (*simulation)->graph().tasks.size();
    bytes = render(**simulation);
  }
  state.counters["tasks"] = static_cast<double>(tasks);
  state.counters["bytes"] = static_cast<double>(bytes);
}

capo::Picture picture_of(const capo::Simulation& simulation) {
  return {.timeline = capo::timeline_of(simulation), .title = "1f1b", .verdict = "accepted"};
}

void DrawSimulated(benchmark::State& state) {
  draw(state, [](const capo::Simulation& simulation) {
    benchmark::DoNotOptimize(&simulation.times());
    return std::size_t{0};
  });
}
void DrawSvg(benchmark::State& state) {
  draw(state,
       [](const capo::Simulation& simulation) { return capo::svg(picture_of(simulation)).size(); });
}
void DrawPage(benchmark::State& state) {
  draw(state, [](const capo::Simulation& simulation) {
    capo::Picture picture = picture_of(simulation);
    capo::add_causes(simulation, picture.timeline);
    std::vector<capo::Picture> pictures;
    pictures.push_back(std::move(picture));
    return capo::html(pictures).size();
  });
}
void DrawPerfetto(benchmark::State& state) {
  draw(state, [](const capo::Simulation& simulation) {
    capo::Picture picture = picture_of(simulation);
    capo::add_causes(simulation, picture.timeline);
    return capo::perfetto_trace(picture).size();
  });
}

BENCHMARK(DrawSimulated)->Arg(320)->Arg(31'250)->Unit(benchmark::kMillisecond);
BENCHMARK(DrawSvg)->Arg(320)->Unit(benchmark::kMillisecond);
BENCHMARK(DrawPage)->Arg(320)->Arg(6'250)->Unit(benchmark::kMillisecond);
BENCHMARK(DrawPerfetto)->Arg(320)->Arg(31'250)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
