// Graphs as an engine reads them back, whatever it is: it lists nodes in any order, and may leave
// out edges that others imply. So nodes are told by what they call, and of edges it is the paths
// that count.

#pragma once

#include "tests/run/labelled_engine.h"
#include "tests/run/operands_of.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace capo::run {

[[nodiscard]] inline std::vector<Operands> all_operands_of(const std::vector<GraphNode>& nodes,
                                                           Engine& engine) {
  std::vector<Operands> all;
  for (const GraphNode& node : nodes) all.push_back(operands_of(node.call, engine));
  return all;
}

/// For each launch of the capture its node. Of nodes that are alike the first is the first
/// launch's.
inline std::vector<std::uint32_t> nodes_of_launches(const std::vector<CapturedLaunch>& launches,
                                                    const std::vector<Operands>& nodes,
                                                    Engine& engine) {
  EXPECT_EQ(launches.size(), nodes.size());
  std::vector<bool> taken(nodes.size(), false);
  std::vector<std::uint32_t> found;
  for (const CapturedLaunch& launch : launches) {
    const Operands operands = operands_of(launch.call, engine);
    std::uint32_t node = 0;
    while (node < nodes.size() && (taken[node] || !(nodes[node] == operands))) ++node;
    if (node == nodes.size()) {
      ADD_FAILURE() << "of " << launch.label << " a call is in no node";
      return {};
    }
    taken[node] = true;
    found.push_back(node);
  }
  return found;
}

/// An order in which nodes can run, the lowest number first.
[[nodiscard]] inline std::vector<std::uint32_t> in_order(const std::vector<GraphNode>& nodes) {
  std::vector<std::uint32_t> order;
  std::vector<bool> over(nodes.size(), false);
  const auto is_next = [&](std::uint32_t id) {
    return !over[id] && std::all_of(nodes[id].after.begin(), nodes[id].after.end(),
                                    [&](std::uint32_t first) { return over[first]; });
  };
  for (bool moved = true; std::exchange(moved, false);) {
    for (std::uint32_t id = 0; id < nodes.size(); ++id) {
      if (!is_next(id)) continue;
      over[id] = moved = true;
      order.push_back(id);
    }
  }
  EXPECT_EQ(order.size(), nodes.size()) << "some wait for each other";
  return order;
}

/// Each waits for the one before it, and so for all that came before.
inline void expect_chain(const std::vector<GraphNode>& nodes) {
  const std::vector<std::uint32_t> order = in_order(nodes);
  for (std::size_t at = 1; at < order.size(); ++at) {
    const auto& after = nodes[order[at]].after;
    EXPECT_TRUE(std::binary_search(after.begin(), after.end(), order[at - 1]));
  }
}

/// For each node, all that are over before it begins.
[[nodiscard]] inline std::vector<std::vector<bool>> before(const std::vector<GraphNode>& nodes) {
  std::vector<std::vector<bool>> over(nodes.size(), std::vector<bool>(nodes.size(), false));
  for (const std::uint32_t id : in_order(nodes)) {
    for (const std::uint32_t first : nodes[id].after) {
      over[id][first] = true;
      for (std::uint32_t each = 0; each < nodes.size(); ++each) {
        if (over[first][each]) over[id][each] = true;
      }
    }
  }
  return over;
}

}  // namespace capo::run
