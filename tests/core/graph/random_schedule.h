// Schedules that all ranks can execute together, drawn over all of them at once: of the
// computations that may come next anywhere, each is equally likely. The same seed gives the same
// schedule.

#pragma once

#include "core/graph/stage_map.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace capo::testing_support {

struct Shape {
  std::int32_t ranks = 1;
  std::int32_t chunks = 1;  ///< of each rank
  std::int32_t microbatches = 1;
  Topology topology = Topology::Loop;
  Delay delay = Delay::Never;  ///< of every chunk: Never or Always
};

inline Schedule random_schedule(const Shape& shape, std::mt19937& random) {
  Schedule schedule{
      .naming = Naming::Named, .topology = shape.topology, .microbatches = shape.microbatches};
  schedule.ranks.resize(static_cast<std::size_t>(shape.ranks));
  for (RankOrder& rank : schedule.ranks) {
    rank.chunks = shape.chunks;
    rank.chunks_declared = true;
    rank.delay = std::vector<Delay>(static_cast<std::size_t>(shape.chunks), shape.delay);
  }
  place_stages(schedule);
  const StageMap map(schedule);

  // How often each microbatch of a stage has run: forward, then backward, then weight gradient.
  constexpr Kind kInTurn[] = {Kind::Forward, Kind::Backward, Kind::BackwardWeight};
  const std::size_t last = shape.delay == Delay::Always ? 3 : 2;
  std::vector<std::vector<std::size_t>> runs(
      static_cast<std::size_t>(map.stages()),
      std::vector<std::size_t>(static_cast<std::size_t>(shape.microbatches)));
  const auto has_run = [&](std::int32_t stage, std::size_t microbatch, std::size_t times) {
    return stage == kNoStage || runs[static_cast<std::size_t>(stage)][microbatch] >= times;
  };
  while (true) {
    std::vector<std::pair<std::int32_t, std::size_t>> ready;
    for (std::int32_t stage = 0; stage < map.stages(); ++stage) {
      for (std::size_t m = 0; m < runs.front().size(); ++m) {
        const std::size_t next = runs[static_cast<std::size_t>(stage)][m];
        const bool fed = next == 0   ? has_run(map.before(stage), m, 1)
                         : next == 1 ? has_run(map.after(stage), m, 2)
                                     : true;
        if (next < last && fed) ready.emplace_back(stage, m);
      }
    }
    if (ready.empty()) return schedule;
    const auto [stage, m] = ready[random() % ready.size()];
    const StageMap::Place& home = map.home(stage);
    std::size_t& next = runs[static_cast<std::size_t>(stage)][m];
    schedule.ranks[static_cast<std::size_t>(home.rank)].order.push_back(
        {.chunk = home.chunk, .microbatch = static_cast<std::int32_t>(m), .kind = kInTurn[next]});
    ++next;
  }
}

}  // namespace capo::testing_support
