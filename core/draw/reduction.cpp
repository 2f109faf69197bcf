#include <capo/core/draw/reduction.h>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>
#include <boost/graph/transitive_reduction.hpp>
#include <boost/property_map/property_map.hpp>

#include <algorithm>
#include <map>

namespace capo {

namespace {

using Plain = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;

std::vector<std::uint32_t> components_of(const std::vector<DrawnEdge>& edges, std::uint32_t nodes,
                                         std::uint32_t& count) {
  const Plain graph(edges.begin(), edges.end(), nodes);
  std::vector<std::uint32_t> component(nodes);
  count = static_cast<std::uint32_t>(boost::strong_components(
      graph, boost::make_iterator_property_map(component.begin(),
                                               boost::get(boost::vertex_index, graph))));
  return component;
}

}  // namespace

std::vector<DrawnEdge> transitively_reduced(std::vector<DrawnEdge> edges, std::uint32_t nodes) {
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  if (edges.empty()) return edges;
  std::uint32_t count = 0;
  const std::vector<std::uint32_t> component = components_of(edges, nodes, count);

  std::vector<DrawnEdge> kept;
  std::map<DrawnEdge, DrawnEdge>
      between;  // two components, and the first edge from one to the other
  for (const DrawnEdge& edge : edges) {
    const DrawnEdge ends{component[edge.first], component[edge.second]};
    if (ends.first == ends.second) {
      kept.push_back(edge);
    } else {
      between.emplace(ends, edge);
    }
  }
  Plain condensed(count);
  for (const auto& [ends, edge] : between) boost::add_edge(ends.first, ends.second, condensed);
  Plain reduced;
  std::vector<Plain::vertex_descriptor> to_reduced(count);
  boost::transitive_reduction(condensed, reduced,
                              boost::make_iterator_property_map(
                                  to_reduced.begin(), boost::get(boost::vertex_index, condensed)),
                              boost::get(boost::vertex_index, condensed));
  for (const auto& [ends, edge] : between) {
    const auto from = to_reduced[ends.first];
    const auto to = to_reduced[ends.second];
    if (boost::edge(from, to, reduced).second) kept.push_back(edge);
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

}  // namespace capo
