// Measures how fast a TE list is read and checked, and how the time per entry grows.
//
//   ./dev bench --benchmark_filter=ReadAndCheck
//
// Three shapes: `one chunk` (F B W in turn), `pipeline` (eight chunks, 1F1B), and `worst` (as many
// chunks as entries/3, one microbatch, all weight gradients last), which makes TransformerEngine's
// own check quadratic. `te` adds the te profile. It reports the time per entry and the process's
// peak memory.

#include "core/input/load.h"
#include "core/profiles/consult.h"
#include "core/rules/check.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <sys/resource.h>

#include <cstdint>
#include <string>

namespace {

enum Shape : std::int64_t { kOneChunk, kPipeline, kWorst };

std::string order_of(Shape shape, std::int64_t entries) {
  std::string text = "[";
  text.reserve(static_cast<std::size_t>(entries) * 10);
  const auto add = [&text](const std::string& entry) {
    if (text.size() > 1) text += ", ";
    text += entry;
  };
  if (shape == kOneChunk) {
    for (std::int64_t m = 0; m < entries / 3; ++m) text += m == 0 ? "1, -1, -1.5" : ", 1, -1, -1.5";
  } else if (shape == kPipeline) {
    constexpr int kChunks = 8;
    const std::int64_t microbatches = entries / kChunks / 3;
    for (int c = 1; c <= kChunks; ++c) add(fmt::format("{}", c));
    for (std::int64_t m = 1; m <= microbatches; ++m) {
      for (int c = kChunks; c >= 1; --c) {
        add(fmt::format("-{0}, -{0}.5", c));
        if (m < microbatches) add(fmt::format("{}", kChunks + 1 - c));
      }
    }
  } else {
    const std::int64_t chunks = entries / 3;
    for (std::int64_t c = 1; c <= chunks; ++c) add(fmt::format("{}", c));
    for (std::int64_t c = chunks; c >= 1; --c) add(fmt::format("-{}", c));
    for (std::int64_t c = chunks; c >= 1; --c) add(fmt::format("-{}.5", c));
  }
  return text + "]";
}

void report(benchmark::State& state) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_MiB"] = static_cast<double>(usage.ru_maxrss) / 1024;
  state.counters["per_entry"] =
      benchmark::Counter(static_cast<double>(state.iterations() * state.range(1)),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void ReadAndCheck(benchmark::State& state) {
  const std::string text = order_of(static_cast<Shape>(state.range(0)), state.range(1));
  for (auto _ : state) {
    auto input = capo::load(capo::Source{.name = "<bench>", .text = text}, {});
    const auto result = capo::check(*input);
    if (result.verdict != capo::Verdict::Accepted)
      state.SkipWithError("the order should be accepted");
    benchmark::DoNotOptimize(&result);
  }
  report(state);
}

void TeProfile(benchmark::State& state) {
  const std::string text = order_of(static_cast<Shape>(state.range(0)), state.range(1));
  auto input = capo::load(capo::Source{.name = "<bench>", .text = text}, {});
  for (auto _ : state) {
    const auto opinion = capo::consult_te(*input, {});
    if (opinion.accepts != true) state.SkipWithError("TE should accept the order");
    benchmark::DoNotOptimize(&opinion);
  }
  report(state);
}

BENCHMARK(ReadAndCheck)
    ->ArgNames({"shape", "entries"})
    ->ArgsProduct({{kOneChunk, kPipeline, kWorst}, {9'984, 99'984, 999'984, 9'999'984}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(TeProfile)
    ->ArgNames({"shape", "entries"})
    ->ArgsProduct({{kOneChunk, kPipeline, kWorst}, {9'984, 9'999'984}})
    ->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
