// What capture saves: a chunk of twenty small kernels, launched one by one and replayed as a graph.
//
//   bench_gpu_replay
//
// Through capo's engine, on one stream, each kernel reading what the one before it wrote: copies of
// a few kilobytes, which take about a microsecond each. Both ways take turns; a round is fifty
// steps without a pause, as in training, or one step and a wait for it; the median round counts.
// What one kernel takes by itself is read off a graph of two hundred. Ends with 5 without a device.

#include "core/base/median.h"
#include "gpu/engine/cuda_engine.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

using capo::median;
using capo::gpu::CudaEngine;
using capo::run::GraphId;

constexpr int kKernels = 20;
constexpr int kRounds = 101;
constexpr std::int64_t kBytes = 4096;

class Chunk {
 public:
  explicit Chunk(CudaEngine& engine)
      : engine_(engine),
        here_(engine.allocate(kBytes, "what is copied")),
        there_(engine.allocate(kBytes, "where it goes")) {
    engine.launch(0, capo::run::Fill{.bytes = kBytes, .value = 1, .to = here_});
  }

  void launch(int kernels) const {
    for (int kernel = 0; kernel < kernels; ++kernel) {
      const bool back = kernel % 2 == 1;
      engine_.launch(
          0, capo::run::Copy{
                 .bytes = kBytes, .from = back ? there_ : here_, .to = back ? here_ : there_});
    }
  }

  [[nodiscard]] GraphId captured(int kernels) const {
    engine_.begin_capture(0);
    launch(kernels);
    return engine_.end_capture();
  }

 private:
  CudaEngine& engine_;
  std::byte* here_;
  std::byte* there_;
};

// Microseconds of one step, of so many without a pause.
template <typename Step>
double time_of(CudaEngine& engine, int steps, Step step) {
  engine.synchronise();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < steps; ++i) step();
  engine.synchronise();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  return took.count() / steps;
}

void compare(CudaEngine& engine, const Chunk& chunk, GraphId graph, int steps, const char* what) {
  std::vector<double> eager;
  std::vector<double> replayed;
  for (int round = 0; round < kRounds; ++round) {
    eager.push_back(time_of(engine, steps, [&] { chunk.launch(kKernels); }));
    replayed.push_back(time_of(engine, steps, [&] { engine.replay(graph, 0); }));
  }
  std::printf("%-28s eager %6.1f us, replayed %6.1f us: %.2f times as fast\n", what, median(eager),
              median(replayed), median(eager) / median(replayed));
}

}  // namespace

int main() {
  auto made = CudaEngine::make();
  if (!made) {
    std::fprintf(stderr, "error: %s\n", made.error().message.c_str());
    return 5;
  }
  CudaEngine& engine = **made;
  const Chunk chunk(engine);
  const GraphId long_graph = chunk.captured(10 * kKernels);
  std::vector<double> alone;
  for (int round = 0; round < kRounds; ++round) {
    alone.push_back(time_of(engine, 1, [&] { engine.replay(long_graph, 0); }));
  }
  std::printf("%s: a kernel takes %.2f us\n", engine.device().c_str(),
              median(alone) / (10 * kKernels));
  const GraphId graph = chunk.captured(kKernels);
  compare(engine, chunk, graph, 50, "twenty kernels, fifty steps");
  compare(engine, chunk, graph, 1, "twenty kernels, one step");
  if (engine.error()) {
    std::fprintf(stderr, "error: %s\n", engine.error()->message.c_str());
    return 5;
  }
  return 0;
}
