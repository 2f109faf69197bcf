#include <capo/core/draw/draw.h>

#include <capo/core/text/load.h>

#include <gtest/gtest.h>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/graphviz.hpp>

#include <map>
#include <set>
#include <sstream>

namespace capo {
namespace {

struct NodeText {
  std::string name;
  std::string label;
};
struct EdgeText {
  std::string edge_class;
  std::string colour;
};
using Parsed =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, NodeText, EdgeText>;

// Boost's own reader, so that what is written is DOT and not only what this program takes for it.
Parsed parse(const std::string& dot) {
  Parsed graph;
  boost::dynamic_properties properties(boost::ignore_other_properties);
  properties.property("node_id", boost::get(&NodeText::name, graph));
  properties.property("label", boost::get(&NodeText::label, graph));
  properties.property("class", boost::get(&EdgeText::edge_class, graph));
  properties.property("color", boost::get(&EdgeText::colour, graph));
  EXPECT_TRUE(boost::read_graphviz(dot, graph, properties)) << dot;
  return graph;
}

std::multiset<std::string> edges_of(const Parsed& graph, const std::string& edge_class) {
  std::multiset<std::string> edges;
  for (auto [at, end] = boost::edges(graph); at != end; ++at) {
    if (graph[*at].edge_class != edge_class) continue;
    edges.insert(graph[boost::source(*at, graph)].name + " " +
                 graph[boost::target(*at, graph)].name);
  }
  return edges;
}

Input input_of(std::string text) {
  auto input = load(Source{.name = "x", .text = std::move(text)}, {});
  EXPECT_TRUE(input);
  return std::move(*input);
}

constexpr const char* kTwoRanks =
    "capo 1\nranks 2\nmicrobatches 1\nplacement loop\nrank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\n";
constexpr const char* kDeadlock =
    "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
    "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n";
constexpr const char* kCycle =
    "capo 1\nranks 2\nmicrobatches 2\nplacement loop\n"
    "rank 0: F1.0 B1.0 F1.1 B1.1\nrank 1: F1.1 F1.0 B1.0 B1.1\n";

std::string drawn(const std::string& text, const DotOptions& dot = {}) {
  const auto picture = draw(input_of(text), {}, dot);
  EXPECT_TRUE(picture);
  return picture ? *picture : "";
}

TEST(Draw, ATransferIsTwoNodesAndABoldEdge) {
  const Parsed graph = parse(drawn(kTwoRanks));
  EXPECT_EQ(boost::num_vertices(graph), 8u);
  EXPECT_EQ(edges_of(graph, "message"),
            (std::multiset<std::string>{"r0_c1_m0_send_F r1_c1_m0_recv_F",
                                        "r1_c1_m0_send_B r0_c1_m0_recv_B"}));
  EXPECT_TRUE(edges_of(graph, "witness").empty());
}

TEST(Draw, CollapsedTransfersAreEdgesBetweenComputations) {
  const Parsed graph = parse(drawn(kTwoRanks, {.collapse = true}));
  EXPECT_EQ(boost::num_vertices(graph), 4u);
  EXPECT_EQ(edges_of(graph, "message"),
            (std::multiset<std::string>{"r0_c1_m0_F r1_c1_m0_F", "r1_c1_m0_B r0_c1_m0_B"}));
}

TEST(Draw, ADeadlockIsACircleOfRedEdges) {
  const Parsed graph = parse(drawn(kDeadlock));
  std::map<std::string, std::string> next;
  for (const std::string& edge : edges_of(graph, "witness")) {
    const std::size_t blank = edge.find(' ');
    next[edge.substr(0, blank)] = edge.substr(blank + 1);
  }
  ASSERT_FALSE(next.empty());
  std::string at = next.begin()->first;
  for (std::size_t i = 0; i < next.size(); ++i) at = next[at];
  EXPECT_EQ(at, next.begin()->first) << "the red edges close";
  EXPECT_NE(drawn(kDeadlock).find("T09 deadlock"), std::string::npos);
}

TEST(Draw, ACycleOfDependenciesIsRedInTheGraphOfComputations) {
  const Parsed graph = parse(drawn(kCycle));
  EXPECT_EQ(edges_of(graph, "witness"),
            (std::multiset<std::string>{"r0_c1_m0_B r0_c1_m1_F", "r0_c1_m1_F r1_c1_m1_F",
                                        "r1_c1_m0_B r0_c1_m0_B", "r1_c1_m1_F r1_c1_m0_B"}));
}

// B1.0 waits, its composite's other member is waited for.
TEST(Draw, ACircleThroughACompositeCloses) {
  const Parsed graph =
      parse(drawn("capo 1\nranks 2\nmicrobatches 2\nplacement chain\n"
                  "rank 0: F1.0 (F1.1 B1.0) B1.1\nrank 1: F1.0 F1.1 B1.0 B1.1\n"));
  EXPECT_EQ(edges_of(graph, "witness"),
            (std::multiset<std::string>{"r0_c1_m0_B r0_c1_m1_F", "r0_c1_m1_F r1_c1_m1_F",
                                        "r1_c1_m0_B r0_c1_m0_B", "r1_c1_m1_F r1_c1_m0_B"}));
  // Which reads nothing of a backward's, though it is the composite's first member.
  EXPECT_FALSE(edges_of(graph, "data").contains("r1_c1_m0_B r0_c1_m1_F"));
}

TEST(Draw, CollapsedTransfersOfAFusedGroupJoinWhatTheyAreBetween) {
  const Parsed graph =
      parse(drawn("capo 1\nranks 2\nmicrobatches 2\nplacement chain\n"
                  "rank 0: F1.0 send-F1.0 F1.1 (send-F1.1 recv-B1.0) B1.0 recv-B1.1 B1.1\n"
                  "rank 1: recv-F1.0 F1.0 B1.0 (recv-F1.1 send-B1.0) F1.1 B1.1 send-B1.1\n",
                  {.collapse = true}));
  EXPECT_EQ(edges_of(graph, "message"),
            (std::multiset<std::string>{"r0_c1_m0_F r1_c1_m0_F", "r0_c1_m1_F r1_c1_m1_F",
                                        "r1_c1_m0_B r0_c1_m0_B", "r1_c1_m1_B r0_c1_m1_B"}));
}

TEST(Draw, WhatIsWrongIsDrawnWhateverIsLeftOut) {
  const auto everything = edges_of(parse(drawn(kDeadlock)), "witness");
  EXPECT_EQ(edges_of(parse(drawn(kDeadlock, {.collapse = true})), "witness"), everything);
  EXPECT_EQ(edges_of(parse(drawn(kDeadlock, {.window = {{0, 1}}})), "witness"), everything);
  EXPECT_EQ(edges_of(parse(drawn(kDeadlock, {.ranks = {0}})), "witness"), everything);
}

TEST(Draw, RanksAndWindowChooseNodes) {
  EXPECT_EQ(boost::num_vertices(parse(drawn(kTwoRanks, {.ranks = {1}}))), 4u);
  EXPECT_EQ(boost::num_vertices(parse(drawn(kTwoRanks, {.window = {{0, 1}}}))), 2u);
  EXPECT_EQ(boost::num_vertices(parse(drawn(kTwoRanks, {.ranks = {1}, .window = {{2, 4}}}))), 2u);
}

TEST(Draw, EachRankIsABox) {
  const std::string dot = drawn(kTwoRanks);
  EXPECT_NE(dot.find("subgraph cluster_rank0"), std::string::npos);
  EXPECT_NE(dot.find("subgraph cluster_rank1"), std::string::npos);
}

TEST(Draw, TheSameInputGivesTheSameBytes) {
  EXPECT_EQ(drawn(kDeadlock), drawn(kDeadlock));
}

TEST(Draw, TooManyNodesAreALimitThatNamesTheWaysOut) {
  EXPECT_TRUE(draw(input_of(kTwoRanks), {}, {.max_nodes = 8}));
  const auto refused = draw(input_of(kTwoRanks), {}, {.max_nodes = 7});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Limit);
  EXPECT_NE(refused.error().message.find("8 nodes, more than the 7"), std::string::npos);
  for (const char* way : {"--ranks", "--window", "--collapse", "--max-nodes"}) {
    EXPECT_NE(refused.error().help.find(way), std::string::npos) << way;
  }
}

TEST(Draw, OrdersThatAreWrongByThemselvesHaveNoGraph) {
  const auto refused = draw(input_of("[1, -1, -1]"), {}, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Unreadable);
}

TEST(Draw, ABareListIsDrawnByItself) {
  const Parsed graph = parse(drawn("[1, 2, -2, -1]"));
  EXPECT_EQ(boost::num_vertices(graph), 4u);
  EXPECT_EQ(edges_of(graph, "data"),
            (std::multiset<std::string>{"r0_c1_m0_F r0_c1_m0_B", "r0_c2_m0_F r0_c2_m0_B"}));
}

TEST(Draw, ARepeatedTransferHasANameOfItsOwn) {
  const std::string dot = drawn("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1RECV_F0,1F0,1B0,1SEND_B0\n");
  EXPECT_NE(dot.find("r1_c1_m0_recv_F_again1"), std::string::npos) << dot;
}

}  // namespace
}  // namespace capo
