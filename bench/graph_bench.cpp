// Measures how fast all ranks' orders are checked together, and how the time per task grows.
//
//   ./dev bench --benchmark_filter=AllRanks
//
// The schedule is interleaved 1F1B, 64 ranks of two chunks, the transfers put in by capo: 512
// microbatches make 391,168 tasks, the table that PyTorch's simulator takes 6.5 s for; the larger
// one makes ten million. `AllRanks` is the whole check, from rules of shape to the execution of the
// task graph; `Read` reads the same table as PyTorch's CSV. `TopologicalSort` and `Execute` compare
// Boost's algorithm with the execution on the same graph. Bytes per task are the process's peak so
// far, schedule included: run one size a process to see its own.

#include "core/frameworks/megatron/orders.h"
#include "core/frameworks/torch/csv_printer.h"
#include "core/graph/build.h"
#include "core/graph/execution.h"
#include "core/graph/lowered.h"
#include "core/input/load.h"
#include "core/rules/check.h"

#include <benchmark/benchmark.h>

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/topological_sort.hpp>

#include <sys/resource.h>

#include <cstdint>
#include <iterator>
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

void AllRanks(benchmark::State& state) {
  capo::Input input{.form = capo::Form::Json, .schedule = schedule_of(state.range(0))};
  for (auto _ : state) {
    const auto result = capo::check(input);
    if (result.verdict != capo::Verdict::Accepted || result.finishes != true)
      state.SkipWithError("the schedule should be accepted");
    benchmark::DoNotOptimize(&result);
  }
  report(state);
}

void Read(benchmark::State& state) {
  const capo::Schedule schedule = schedule_of(state.range(0));
  const capo::StageMap map(schedule);
  const auto microbatches = static_cast<std::int32_t>(state.range(0));
  const auto added = capo::add_transfers(schedule, map, microbatches);
  const auto text = capo::print_torch_csv(capo::to_schedule(added.lowered, schedule));
  if (!text) {
    state.SkipWithError("the schedule should have a table");
    return;
  }
  for (auto _ : state) {
    auto input = capo::load(capo::Source{.name = "bench.csv", .text = *text}, {});
    benchmark::DoNotOptimize(&input);
  }
  report(state);
}

capo::WiredTransfers wired(std::int64_t microbatches) {
  const capo::Schedule schedule = schedule_of(microbatches);
  const capo::StageMap map(schedule);
  const auto count = static_cast<std::int32_t>(microbatches);
  return capo::wire_transfers(capo::add_transfers(schedule, map, count).lowered, map, count, {});
}

void Execute(benchmark::State& state) {
  const auto graph = wired(state.range(0));
  for (auto _ : state) {
    const auto execution = capo::execute(graph.graph);
    if (!execution.finishes()) state.SkipWithError("it should finish");
    benchmark::DoNotOptimize(&execution);
  }
  report(state);
}

using OfBoost =
    boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                       boost::no_property, std::uint32_t, std::uint32_t>;

OfBoost of_boost(const capo::TaskGraph& graph) {
  std::vector<std::pair<capo::Vertex, capo::Vertex>> edges;
  for (capo::Vertex from = 0; from < graph.edges.vertices(); ++from) {
    graph.edges.for_each_out(
        from, [&](capo::Vertex to, capo::EdgeKind) { edges.emplace_back(from, to); });
  }
  return {boost::edges_are_sorted, edges.begin(), edges.end(),
          static_cast<capo::Vertex>(graph.edges.vertices())};
}

void TopologicalSort(benchmark::State& state) {
  const auto graph = of_boost(wired(state.range(0)).graph);
  for (auto _ : state) {
    std::vector<capo::Vertex> order;
    order.reserve(boost::num_vertices(graph));
    boost::topological_sort(graph, std::back_inserter(order));
    benchmark::DoNotOptimize(order.data());
  }
  report(state);
}

constexpr std::int64_t kTorchs = 512;
constexpr std::int64_t kTenMillion = 13'120;

BENCHMARK(AllRanks)->Arg(kTorchs)->Arg(kTenMillion)->Unit(benchmark::kMillisecond);
BENCHMARK(Read)->Arg(kTorchs)->Unit(benchmark::kMillisecond);
BENCHMARK(Execute)->Arg(kTorchs)->Unit(benchmark::kMillisecond);
BENCHMARK(TopologicalSort)->Arg(kTorchs)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
