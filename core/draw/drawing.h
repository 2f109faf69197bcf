// A graph as it is drawn: nodes in lanes, lines between them, and the words of both.
//
//   rank 0  [F1.0]->[F1.1]->[B1.0]      a lane is a stream of a rank; a column is as far to the
//   rank 1          [F1.0]->[B1.0]      right as what it waits for lets it be
//
// Tested by draw_test.cpp and lanes_test.cpp.

#pragma once

#include "core/order/schedule.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace capo {

struct DrawnNode {
  std::string name;  ///< "r2_c1_m3_F"
  std::string label;
  std::string tooltip;
  std::int32_t rank = 0;
  std::uint32_t stream = 0;
  Kind kind = Kind::Forward;
  bool red = false;
  std::string note;  ///< the rule that a finding breaks there; empty: none
};

/// The ways to draw an edge. Kinds that mean the same to a reader share a class.
enum class EdgeClass : std::uint8_t {
  Order,
  Data,
  Message,
  Issue,
  Wait,
  Event,
  Collective,
  Witness
};

/// A line between two positions in Drawing::nodes.
struct DrawnLine {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  EdgeClass of = EdgeClass::Order;
  bool waits = true;  ///< `to` waits for `from`, so that it stands further to the right
  std::string words;
};

struct Drawing {
  std::string title;
  std::vector<DrawnNode> nodes;  ///< rank after rank
  std::vector<DrawnLine> lines;
};

/// The drawing as DOT with all places, so that Graphviz has nothing to lay out. Rows go on in a
/// next line after so many columns; 0: so many that the page is a bit wider than high.
[[nodiscard]] std::string dot_text(const Drawing& drawing, std::size_t columns);

/// Two nodes, the first of which comes before the second.
using DrawnEdge = std::pair<std::uint32_t, std::uint32_t>;

/// Leaves out the edges that a path of others says already (reduction.cpp). Nodes are below
/// `nodes`; the result is sorted and holds no edge twice.
[[nodiscard]] std::vector<DrawnEdge> transitively_reduced(std::vector<DrawnEdge> edges,
                                                          std::uint32_t nodes);

}  // namespace capo
