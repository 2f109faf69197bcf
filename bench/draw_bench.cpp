// Measures how fast a step is drawn, beside the time that its simulation takes.
//
//   ./dev bench --benchmark_filter=Draw
//
// The schedule is 1F1B on 16 ranks; 320 microbatches make 10,240 tasks and 31,250 a million.
// `DrawSimulated` is from the schedule to all times, which the others begin with; `bytes` is the
// size of what they write, `simulate` and `draw` are medians of the two parts in seconds of the
// processor, and `ratio` is the median of each draw to the simulation before it.

#include "core/base/median.h"
#include "core/order/input.h"
#include "core/timeline/picture.h"
#include "schedules/catalogue.h"
#include "sim/simulation.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

namespace {

using capo::median;

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
  const auto seconds = [](std::clock_t time) {
    return static_cast<double>(time) / static_cast<double>(CLOCKS_PER_SEC);
  };
  const capo::Input input = input_of(state.range(0));
  const capo::SimulationOptions given = options();
  std::vector<double> simulating;
  std::vector<double> drawing;
  std::vector<double> ratios;
  for (auto _ : state) {
    const auto begin = std::clock();
    const auto simulation = capo::simulation_of(input, given);
    benchmark::DoNotOptimize(&(*simulation)->times());
    const auto simulated = std::clock();
    state.counters["bytes"] = static_cast<double>(render(**simulation));
    simulating.push_back(seconds(simulated - begin));
    drawing.push_back(seconds(std::clock() - simulated));
    ratios.push_back(drawing.back() / simulating.back());
    state.counters["tasks"] = static_cast<double>((*simulation)->graph().tasks.size());
  }
  state.counters["simulate"] = median(simulating);
  state.counters["draw"] = median(drawing);
  state.counters["ratio"] = median(ratios);
}

capo::Picture picture_of(const capo::Simulation& simulation) {
  return {.timeline = capo::timeline_of(simulation), .title = "1f1b", .verdict = "accepted"};
}

void DrawSimulated(benchmark::State& state) {
  draw(state, [](const capo::Simulation&) { return std::size_t{0}; });
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
