#include "core/graph/stage_map.h"

#include "core/base/index.h"

#include <algorithm>

namespace capo {

StageMap::StageMap(const Schedule& schedule)
    : wired_(schedule.topology != Topology::Independent),
      stages_of_first_(std::max(1, stages_of_first_pipeline(schedule))) {
  std::size_t chunks = 0;
  for (const RankOrder& rank : schedule.ranks) chunks += as_index(rank.chunks);
  homes_.reserve(chunks);
  stages_.reserve(schedule.ranks.size());
  std::int32_t next = 0;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const RankOrder& rank = schedule.ranks[r];
    auto& stages = stages_.emplace_back();
    stages.reserve(as_index(rank.chunks));
    for (ChunkId chunk = 1; chunk <= rank.chunks; ++chunk) {
      const std::size_t at = chunk.index();
      const StageId stage = wired_ && at < rank.stages.size() ? rank.stages[at] : next++;
      stages.push_back(stage);
      if (stage.index() >= homes_.size()) homes_.resize(stage.index() + 1);
      // The first holder is the home unless it is a stray, which a table places elsewhere.
      Place& home = homes_[stage.index()];
      const bool stray = chunk > rank.chunks - rank.strays;
      if (home.rank < 0 && !stray) home = {.rank = static_cast<std::int32_t>(r), .chunk = chunk};
    }
  }
}

StageId StageMap::neighbour(Kind kind, StageId stage) const {
  switch (kind) {
    case Kind::SendForward:
    case Kind::ReceiveBackward:
    case Kind::Backward:
    case Kind::BackwardInput:
    case Kind::DispatchBackward:
    case Kind::CombineBackward:
      return after(stage);
    default:
      return before(stage);
  }
}

}  // namespace capo
