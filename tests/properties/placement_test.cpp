// The chunks of a placement lie where the oracle's walk finds them.

#include "testing/oracle/placement.h"
#include "testing/generators/topology.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <optional>
#include <vector>

namespace capo::testing {
namespace {

std::optional<oracle::Walk> walk_of(Topology topology) {
  switch (topology) {
    case Topology::Chain:
      return oracle::Walk::RankByRank;
    case Topology::Loop:
      return oracle::Walk::Down;
    case Topology::V:
      return oracle::Walk::DownAndUp;
    case Topology::Bidirectional:
      return oracle::Walk::FromBothEnds;
    case Topology::Independent:
    case Topology::Custom:
      break;
  }
  return std::nullopt;
}

RC_GTEST_PROP(Placement, OfEveryRankIsTheOracles, ()) {
  const Schedule schedule = *drawn_topology();
  const auto walk = walk_of(schedule.topology);
  RC_PRE(walk.has_value());
  std::vector<int> chunks;
  std::vector<std::vector<int>> placed;
  for (const RankOrder& rank : schedule.ranks) {
    chunks.push_back(rank.chunks);
    placed.emplace_back(rank.stages.begin(), rank.stages.end());
  }
  RC_ASSERT(placed == oracle::stages(*walk, chunks));
}

}  // namespace
}  // namespace capo::testing
