// Measures how much a plan adds to a check of all ranks, and how long capo's own plan takes to
// make.
//
//   ./dev bench --benchmark_filter=Plan
//
// The schedule is graph_bench.cpp's: interleaved 1F1B, 64 ranks of two chunks, 512 microbatches,
// 391,168 tasks with their transfers; and again with four times the microbatches, to see that time
// goes with the tasks. `NoPlan` is the check without a plan, `TePlan` and `SafePlan` are with a
// plan assigned and judged: the difference is the cost of hazards and races, in one environment;
// `TePlanUndeclared` is judged in all. `AssignSafe` makes capo's plan alone.

#include "core/frameworks/assign.h"
#include "core/frameworks/megatron/orders.h"
#include "core/graph/build.h"
#include "core/graph/lowered.h"
#include "core/rules/check.h"

#include <benchmark/benchmark.h>

#include <sys/resource.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace {

constexpr std::int32_t kRanks = 64;
constexpr std::int32_t kChunks = 2;

// Both ways between all stages but those at the end, plus both computations of each.
std::int64_t tasks_of(std::int64_t microbatches) {
  constexpr std::int64_t kStages = std::int64_t{kRanks} * kChunks;
  return microbatches * (kStages * 2 + (kStages - 1) * 4);
}

std::size_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

// Before anything was made: Google Benchmark calls each function several times.
const std::size_t kBytesAtStart = peak_bytes();

capo::Schedule schedule_of(std::int64_t microbatches) {
  capo::Limits limits;
  limits.entries = std::uint64_t{1} << 31;
  const auto generated = capo::megatron::orders_of({.configuration = {.pipeline = kRanks,
                                                                      .virtual_stages = kChunks,
                                                                      .microbatches = microbatches,
                                                                      .group_size = kRanks}},
                                                   limits);
  capo::Schedule schedule = capo::megatron::schedule_of(*generated);
  schedule.p2p = std::nullopt;  // transfers are those that PyTorch adds
  return schedule;
}

void report(benchmark::State& state) {
  const std::int64_t tasks = tasks_of(state.range(0));
  state.counters["tasks"] = static_cast<double>(tasks);
  state.counters["per_task"] =
      benchmark::Counter(static_cast<double>(state.iterations() * tasks),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["peak_bytes_per_task"] =
      static_cast<double>(peak_bytes() - kBytesAtStart) / static_cast<double>(tasks);
}

void check_with(benchmark::State& state, std::optional<capo::PlanKind> kind,
                const capo::Environment& environment = {.assume_defaults = true}) {
  const capo::Input input{.form = capo::Form::Json, .schedule = schedule_of(state.range(0))};
  capo::CheckOptions options{.environment = environment};
  options.plan.kind = kind;
  options.plan.aliases = capo::Aliases{.input = true, .grad_output = true};
  std::size_t hazards = 0;
  for (auto _ : state) {
    const auto result = capo::check(input, options);
    if (result.finishes != true) state.SkipWithError("the schedule should finish");
    if (result.plan) hazards = result.plan->hazards.size();
    benchmark::DoNotOptimize(&result);
  }
  report(state);
  state.counters["hazards"] = static_cast<double>(hazards);
}

void NoPlan(benchmark::State& state) {
  check_with(state, std::nullopt);
}
void TePlan(benchmark::State& state) {
  check_with(state, capo::PlanKind::Te);
}
void TePlanUndeclared(benchmark::State& state) {
  check_with(state, capo::PlanKind::Te, {});
}
void SafePlan(benchmark::State& state) {
  check_with(state, capo::PlanKind::Safe);
}

void AssignSafe(benchmark::State& state) {
  const capo::Schedule schedule = schedule_of(state.range(0));
  const capo::StageMap map(schedule);
  const auto microbatches = static_cast<std::int32_t>(state.range(0));
  const capo::Lowered lowered = capo::add_transfers(schedule, map, microbatches).lowered;
  const auto wired = capo::wire_transfers(lowered, map, microbatches, {});
  std::vector<std::vector<capo::Delay>> delay;
  for (const auto& rank : schedule.ranks) delay.push_back(capo::resolved_delay(rank));
  const capo::BufferTable table(schedule, microbatches, {}, {});
  capo::Course course{.map = &map, .delay = &delay, .graph = &wired.graph, .lowered = &lowered};
  course.work.resize(schedule.ranks.size());
  for (auto _ : state) {
    const auto plan = capo::assign(table, course, capo::PlanKind::Safe);
    benchmark::DoNotOptimize(&plan);
  }
  report(state);
}

constexpr std::int64_t kTorchs = 512;

BENCHMARK(NoPlan)->Arg(kTorchs)->Arg(4 * kTorchs)->Unit(benchmark::kMillisecond);
BENCHMARK(TePlan)->Arg(kTorchs)->Arg(4 * kTorchs)->Unit(benchmark::kMillisecond);
BENCHMARK(TePlanUndeclared)->Arg(kTorchs)->Unit(benchmark::kMillisecond);
BENCHMARK(SafePlan)->Arg(kTorchs)->Arg(4 * kTorchs)->Unit(benchmark::kMillisecond);
BENCHMARK(AssignSafe)->Arg(kTorchs)->Arg(4 * kTorchs)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
