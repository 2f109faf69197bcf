// Leaves out the edges that a path of other edges of their kind says already.
//
// If there are cycles, their strong components are condensed first: edges within a component stay,
// and between two components one edge stands for all. boost::transitive_reduction is not used: its
// time and memory are nodes times chains, and with it the 47,104 tasks of 1F1B on 16 ranks with 512
// microbatches took 11.3 s, without it 0.2 s. Tested by reduction_test.cpp.

#include "core/draw/drawing.h"

#include "core/base/assert.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>
#include <boost/property_map/property_map.hpp>

#include <algorithm>
#include <span>

namespace capo {

namespace {

using Plain = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;

// Tarjan's method numbers a component before those that lead to it, so that along every edge
// between two of them numbers fall.
std::vector<std::uint32_t> components_of(const std::vector<DrawnEdge>& edges, std::uint32_t nodes,
                                         std::uint32_t& count) {
  const Plain graph(edges.begin(), edges.end(), nodes);
  std::vector<std::uint32_t> component(nodes);
  count = static_cast<std::uint32_t>(boost::strong_components(
      graph, boost::make_iterator_property_map(component.begin(),
                                               boost::get(boost::vertex_index, graph))));
  return component;
}

// Sorted edges without cycles, along which the numbers of nodes fall.
class Condensed {
 public:
  Condensed(const std::vector<DrawnEdge>& edges, std::uint32_t count)
      : edges_(edges), first_(count + 1), arriving_(count), seen_(count) {
    for (const auto& [from, to] : edges) {
      CAPO_ASSERT(from > to, "components are numbered against their edges");
      ++first_[from + 1];
      ++arriving_[to];
    }
    for (std::uint32_t node = 0; node < count; ++node) first_[node + 1] += first_[node];
  }

  /// Whether another path leads from the one end to the other.
  [[nodiscard]] bool is_spare(const DrawnEdge& edge) {
    const auto [from, to] = edge;
    // It would leave by another edge and arrive by another one.
    if (leaving(from).size() == 1 || arriving_[to] == 1) return false;
    ++search_;
    open_.clear();
    open(from, to + 1);
    while (!open_.empty()) {
      const std::uint32_t at = open_.back();
      open_.pop_back();
      const auto onward = leaving(at);
      if (std::binary_search(onward.begin(), onward.end(), DrawnEdge{at, to})) return true;
      open(at, to + 1);
    }
    return false;
  }

 private:
  [[nodiscard]] std::span<const DrawnEdge> leaving(std::uint32_t node) const {
    return std::span(edges_).subspan(first_[node], first_[node + 1] - first_[node]);
  }

  // Pushes the ends of a node's edges that do not go beyond `lowest`, the nearest to it on top: if
  // there is a way, it is most often the shortest.
  void open(std::uint32_t node, std::uint32_t lowest) {
    const auto edges = leaving(node);
    const auto first = std::lower_bound(edges.begin(), edges.end(), DrawnEdge{node, lowest});
    for (auto edge = edges.end(); edge != first;) {
      --edge;
      if (seen_[edge->second] == search_) continue;
      seen_[edge->second] = search_;
      open_.push_back(edge->second);
    }
  }

  const std::vector<DrawnEdge>& edges_;
  std::vector<std::uint32_t> first_;     // by node: its first edge
  std::vector<std::uint32_t> arriving_;  // by node: how many edges lead to it
  std::vector<std::uint32_t> seen_;      // by node: the latest search that came there
  std::uint32_t search_ = 0;
  std::vector<std::uint32_t> open_;
};

}  // namespace

std::vector<DrawnEdge> transitively_reduced(std::vector<DrawnEdge> edges, std::uint32_t nodes) {
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  if (edges.empty()) return edges;
  std::uint32_t count = 0;
  const std::vector<std::uint32_t> component = components_of(edges, nodes, count);

  std::vector<DrawnEdge> kept;
  std::vector<std::pair<DrawnEdge, DrawnEdge>> between;  // two components, and an edge of theirs
  for (const DrawnEdge& edge : edges) {
    const DrawnEdge ends{component[edge.first], component[edge.second]};
    if (ends.first == ends.second) {
      kept.push_back(edge);
    } else {
      between.emplace_back(ends, edge);
    }
  }
  // The first of several edges stands for all.
  std::sort(between.begin(), between.end());
  between.erase(std::unique(between.begin(), between.end(),
                            [](const auto& a, const auto& b) { return a.first == b.first; }),
                between.end());
  std::vector<DrawnEdge> condensed;
  condensed.reserve(between.size());
  for (const auto& [ends, edge] : between) condensed.push_back(ends);
  Condensed graph(condensed, count);
  for (const auto& [ends, edge] : between) {
    if (!graph.is_spare(ends)) kept.push_back(edge);
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

}  // namespace capo
