#include "core/plan/neighbours.h"

#include "core/base/index.h"

#include <algorithm>

namespace capo {

Neighbours::Neighbours(const StageMap& map, RankId rank, std::int32_t chunks)
    : ends_(as_index(chunks)) {
  std::vector<std::array<StageMap::Place, 2>> homes(ends_.size());
  for (ChunkId chunk = 1; chunk <= chunks; ++chunk) {
    const StageId stage = map.stage_of(rank, chunk);
    auto home = homes[chunk.index()].begin();
    for (const StageId other : {map.before(stage), map.after(stage)}) {
      if (other != kNoStage && map.home(other).rank >= 0 && !map.same_rank(other, stage)) {
        *home = map.home(other);
        ranks_.push_back(home->rank);
      }
      ++home;
    }
  }
  std::sort(ranks_.begin(), ranks_.end());
  ranks_.erase(std::unique(ranks_.begin(), ranks_.end()), ranks_.end());
  for (std::size_t chunk = 0; chunk < ends_.size(); ++chunk) {
    for (std::size_t end = 0; end < 2; ++end) {
      const StageMap::Place& home = homes[chunk][end];
      if (home.rank < 0) continue;
      ends_[chunk][end] = {.neighbour = static_cast<std::int32_t>(position_of(home.rank)),
                           .chunk = home.chunk};
    }
  }
}

std::size_t Neighbours::position_of(RankId neighbour) const {
  return as_index(std::lower_bound(ranks_.begin(), ranks_.end(), neighbour) - ranks_.begin());
}

bool in_rows_and_rings(const StageMap& map, std::size_t ranks) {
  std::vector<std::array<RankId, 2>> neighbours(ranks, {-1, -1});
  // Whether the rank has the other one, or room for it, as a neighbour.
  const auto takes = [&neighbours](RankId rank, RankId other) {
    for (RankId& known : neighbours[rank.index()]) {
      if (known < 0) known = other;
      if (known == other) return true;
    }
    return false;
  };
  for (StageId stage = 0; stage < map.stages(); ++stage) {
    const StageId after = map.after(stage);
    if (after == kNoStage || map.same_rank(stage, after)) continue;
    const RankId one = map.home(stage).rank;
    const RankId other = map.home(after).rank;
    if (!takes(one, other) || !takes(other, one)) return false;
  }
  return true;
}

std::vector<std::vector<RankId>> rings_of(const std::vector<Neighbours>& of_ranks) {
  std::vector<bool> seen(of_ranks.size());
  // The ranks from one on, away from its first neighbour, up to an end or to where it began.
  const auto walk = [&](RankId from) {
    std::vector<RankId> way;
    RankId rank = from;
    while (rank >= 0 && !seen[rank.index()]) {
      seen[rank.index()] = true;
      way.push_back(rank);
      const auto& next = of_ranks[rank.index()].ranks();
      const auto unseen = std::find_if(next.rbegin(), next.rend(),
                                       [&](RankId other) { return !seen[other.index()]; });
      rank = unseen == next.rend() ? RankId(-1) : *unseen;
    }
    return way;
  };
  for (std::size_t r = 0; r < of_ranks.size(); ++r) {
    const auto rank = static_cast<std::int32_t>(r);
    if (!seen[r] && of_ranks[r].ranks().size() < 2) walk(rank);  // a row
  }
  std::vector<std::vector<RankId>> rings;
  for (std::size_t r = 0; r < of_ranks.size(); ++r) {
    if (!seen[r]) rings.push_back(walk(static_cast<std::int32_t>(r)));
  }
  return rings;
}

}  // namespace capo
