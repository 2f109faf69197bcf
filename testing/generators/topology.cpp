#include "testing/generators/topology.h"

#include "core/base/index.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace capo::testing {

namespace {

// A topology in which all ranks have equally many chunks.
bool is_even(Topology topology) {
  return topology == Topology::Loop || topology == Topology::V ||
         topology == Topology::Bidirectional;
}

std::int32_t draw_chunks(Dice& dice, Topology topology) {
  return topology == Topology::Bidirectional ? 2 * dice.between(1, 2) : dice.between(1, 3);
}

// Stages 0, 1, ... dealt out at random, and placed as each topology does.
void draw_stages(Dice& dice, Schedule& schedule) {
  place_stages(schedule);
  if (schedule.topology != Topology::Custom) return;
  std::vector<std::int32_t> stages(as_index(all_chunks(schedule)));
  std::iota(stages.begin(), stages.end(), 0);
  for (std::size_t i = stages.size(); i > 1; --i) std::swap(stages[i - 1], stages[dice.below(i)]);
  for (RankOrder& rank : schedule.ranks) {
    rank.stages.assign(stages.end() - rank.chunks, stages.end());
    stages.resize(stages.size() - rank.stages.size());
  }
}

// Stages without gaps, after some have gone.
void close_gaps(Schedule& schedule) {
  if (schedule.stages) schedule.stages = all_chunks(schedule);
  if (schedule.topology != Topology::Custom) return place_stages(schedule);
  std::vector<std::int32_t*> stages;
  for (RankOrder& rank : schedule.ranks) {
    for (std::int32_t& stage : rank.stages) stages.push_back(&stage);
  }
  std::sort(stages.begin(), stages.end(), [](const auto* a, const auto* b) { return *a < *b; });
  for (std::size_t i = 0; i < stages.size(); ++i) *stages[i] = static_cast<std::int32_t>(i);
}

void take_chunks(RankOrder& rank, std::int32_t count) {
  rank.chunks -= count;
  if (!rank.stages.empty()) rank.stages.resize(as_index(rank.chunks));
}

std::vector<Schedule> simpler(const Schedule& schedule) {
  std::vector<Schedule> out;
  for (std::size_t r = 0; schedule.ranks.size() > 1 && r < schedule.ranks.size(); ++r) {
    forget_rank(out.emplace_back(schedule), r);
  }
  const std::int32_t least = schedule.topology == Topology::Bidirectional ? 2 : 1;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    if (schedule.ranks[r].chunks <= least) continue;
    Schedule& less = out.emplace_back(schedule);
    if (is_even(schedule.topology)) {
      for (RankOrder& rank : less.ranks) take_chunks(rank, least);
    } else {
      take_chunks(less.ranks[r], 1);
    }
    close_gaps(less);
    if (is_even(schedule.topology)) break;
  }
  if (schedule.topology != Topology::Chain) {
    Schedule& chain = out.emplace_back(schedule);
    chain.topology = Topology::Chain;
    place_stages(chain);
  }
  return out;
}

}  // namespace

std::int32_t all_chunks(const Schedule& schedule) {
  std::int32_t chunks = 0;
  for (const RankOrder& rank : schedule.ranks) chunks += rank.chunks;
  return chunks;
}

void forget_rank(Schedule& schedule, std::size_t rank) {
  schedule.ranks.erase(schedule.ranks.begin() + static_cast<std::ptrdiff_t>(rank));
  close_gaps(schedule);
}

void draw_placement(Dice& dice, Schedule& schedule, const DrawRest& draw_rest) {
  schedule.ranks.resize(1 + dice.below(4));
  const std::int32_t chunks_of_all = draw_chunks(dice, schedule.topology);
  for (RankOrder& rank : schedule.ranks) {
    rank.chunks = is_even(schedule.topology) ? chunks_of_all : draw_chunks(dice, schedule.topology);
    rank.chunks_declared = true;
    draw_rest(rank);
  }
  draw_stages(dice, schedule);
}

Schedule draw_topology(Dice& dice) {
  Schedule schedule{.topology = dice.pick(std::span<const Topology>(kEveryTopology))};
  draw_placement(dice, schedule, [](RankOrder&) {});
  return schedule;
}

rc::Gen<Schedule> drawn_topology() {
  return generator(draw_topology, simpler);
}

}  // namespace capo::testing
