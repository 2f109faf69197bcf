#include "core/draw/drawing.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace capo {
namespace {

using Edges = std::vector<DrawnEdge>;

// Which nodes each node reaches, by search.
std::vector<std::set<std::uint32_t>> closure(const Edges& edges, std::uint32_t nodes) {
  std::vector<std::set<std::uint32_t>> reached(nodes);
  for (std::uint32_t root = 0; root < nodes; ++root) {
    std::vector<std::uint32_t> open{root};
    while (!open.empty()) {
      const std::uint32_t at = open.back();
      open.pop_back();
      for (const auto& [from, to] : edges) {
        if (from == at && reached[root].insert(to).second) open.push_back(to);
      }
    }
  }
  return reached;
}

TEST(Reduction, AShortcutIsLeftOut) {
  EXPECT_EQ(transitively_reduced({{0, 1}, {1, 2}, {0, 2}}, 3), (Edges{{0, 1}, {1, 2}}));
}

TEST(Reduction, NoEdgesStayNone) {
  EXPECT_EQ(transitively_reduced({}, 3), Edges{});
}

TEST(Reduction, AnEdgeTwiceIsOne) {
  EXPECT_EQ(transitively_reduced({{0, 1}, {0, 1}}, 2), (Edges{{0, 1}}));
}

TEST(Reduction, ACycleStaysWhole) {
  EXPECT_EQ(transitively_reduced({{0, 1}, {1, 2}, {2, 0}}, 3), (Edges{{0, 1}, {1, 2}, {2, 0}}));
}

TEST(Reduction, IntoACycleOneEdgeIsEnough) {
  const Edges reduced = transitively_reduced({{3, 0}, {3, 1}, {0, 1}, {1, 0}}, 4);
  EXPECT_EQ(reduced, (Edges{{0, 1}, {1, 0}, {3, 0}}));
}

// Of which a table of all against all would take 80 GB.
TEST(Reduction, ManyPiecesAreReducedEachByItself) {
  constexpr std::uint32_t kPieces = 100'000;
  Edges edges;
  Edges reduced;
  for (std::uint32_t piece = 0; piece < kPieces; ++piece) {
    const std::uint32_t first = piece * 3;
    reduced.insert(reduced.end(), {{first, first + 1}, {first + 1, first + 2}});
    edges.insert(edges.end(), {{first, first + 1}, {first + 1, first + 2}, {first, first + 2}});
  }
  EXPECT_EQ(transitively_reduced(edges, kPieces * 3), reduced);
}

// Forwards down a chain of stages, backwards up again, and what each backward reads of its forward.
TEST(Reduction, ManyShortcutsOfOnePathCostLittle) {
  constexpr std::uint32_t kStages = 50'000;
  Edges edges;
  for (std::uint32_t at = 0; at + 1 < 2 * kStages; ++at) edges.emplace_back(at, at + 1);
  const Edges path = edges;
  for (std::uint32_t stage = 0; stage < kStages; ++stage) {
    edges.emplace_back(stage, 2 * kStages - 1 - stage);
  }
  EXPECT_EQ(transitively_reduced(edges, 2 * kStages), path);
}

TEST(Reduction, ReachesWhatItReachedAndNothingIsSpare) {
  std::mt19937 engine(20261120);
  const auto random = [&](std::uint32_t below) {
    return std::uniform_int_distribution<std::uint32_t>(0, below - 1)(engine);
  };
  for (int round = 0; round < 300; ++round) {
    const std::uint32_t nodes = 2 + random(9);
    Edges edges;
    for (std::uint32_t i = random(25); i > 0; --i) {
      const auto from = random(nodes);
      const auto to = random(nodes);
      if (from != to) edges.emplace_back(from, to);
    }
    const Edges reduced = transitively_reduced(edges, nodes);
    const auto before = closure(edges, nodes);
    ASSERT_EQ(closure(reduced, nodes), before);
    for (std::size_t i = 0; i < reduced.size(); ++i) {
      const auto& [from, to] = reduced[i];
      const bool in_cycle = before[to].contains(from);
      Edges without = reduced;
      without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
      if (!in_cycle) {
        EXPECT_NE(closure(without, nodes), before) << from << " -> " << to;
      }
    }
  }
}

}  // namespace
}  // namespace capo
