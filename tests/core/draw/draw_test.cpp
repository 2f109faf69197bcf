#include "core/draw/draw.h"

#include "core/input/load.h"

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
  std::string colour;
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
  properties.property("color", boost::get(&NodeText::colour, graph));
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

std::set<std::string> nodes_of(const Parsed& graph) {
  std::set<std::string> nodes;
  for (auto [at, end] = boost::vertices(graph); at != end; ++at) nodes.insert(graph[*at].name);
  return nodes;
}

std::set<std::string> red_nodes_of(const Parsed& graph) {
  std::set<std::string> nodes;
  for (auto [at, end] = boost::vertices(graph); at != end; ++at) {
    if (graph[*at].colour == "#d00000") nodes.insert(graph[*at].name);
  }
  return nodes;
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

std::string drawn(const std::string& text, const DotOptions& dot = {},
                  const CheckOptions& options = {}) {
  const auto picture = draw(input_of(text), options, dot);
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

// --- the first witness ---------------------------------------------------------------------------

// What a plan makes of it is wrong with an order that is right by itself.
TEST(Draw, WhoIsHurtUnderAPlanIsRed) {
  const std::string list = "[1, -1, 1, -1.5, -1, -1.5]";
  EXPECT_TRUE(red_nodes_of(parse(drawn(list, {}, {.plan = {.kind = PlanKind::Safe}}))).empty());
  const std::string dot =
      drawn(list, {}, {.plan = {.kind = PlanKind::Te, .aliases = Aliases{.input = true}}});
  EXPECT_NE(dot.find("rejected, B01"), std::string::npos) << dot;
  EXPECT_EQ(red_nodes_of(parse(dot)),
            (std::set<std::string>{"r0_c1_m0_F", "r0_c1_m1_F", "r0_c1_m0_W"}));
  EXPECT_EQ(edges_of(parse(dot), "witness"),
            (std::multiset<std::string>{"r0_c1_m0_F r0_c1_m1_F", "r0_c1_m1_F r0_c1_m0_W"}));
  EXPECT_NE(dot.find("label=\"it is read here\""), std::string::npos) << dot;
}

TEST(Draw, OfSeveralFindingsTheFirstIsRed) {
  const Parsed graph = parse(
      drawn("capo 1\nmicrobatches 1\nplacement chain\nrank 0: F2.0 F1.0 F3.0 B1.0 B3.0 B2.0\n"));
  EXPECT_EQ(red_nodes_of(graph), (std::set<std::string>{"r0_c1_m0_F", "r0_c2_m0_F"}));
  EXPECT_EQ(edges_of(graph, "witness"),
            (std::multiset<std::string>{"r0_c1_m0_F r0_c2_m0_F", "r0_c2_m0_F r0_c1_m0_F"}));
}

// Nothing is left out of a picture because something in it cannot run.
TEST(Draw, ACompositeThatWaitsForItselfIsRed) {
  const Parsed graph =
      parse(drawn("capo 1\nmicrobatches 1\nplacement v\n"
                  "rank 0: F1.0 F2.0 B2.0 B1.0\nrank 1: F1.0 F2.0 (B2.0 B1.0)\n"));
  EXPECT_EQ(boost::num_vertices(graph), 8U);
  EXPECT_EQ(red_nodes_of(graph), (std::set<std::string>{"r1_c1_m0_B", "r1_c2_m0_B"}));
}

TEST(Draw, MessagesThatShouldNotMeetAreJoined) {
  const Parsed graph =
      parse(drawn("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                  "1RECV_F1,1RECV_F0,1F0,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n"));
  EXPECT_EQ(edges_of(graph, "witness"),
            (std::multiset<std::string>{"r0_c1_m0_send_F r1_c1_m1_recv_F"}));
}

TEST(Draw, WhereMegatronStopsTheEntryIsRed) {
  const Parsed graph =
      parse(drawn("capo 1\nmicrobatches 2\nplacement loop\n"
                  "rank 0: F1.0 F2.0 F1.1 F2.1 B2.0 B1.0 B2.1 B1.1\n"
                  "rank 1: F1.0 F2.0 F1.1 F2.1 B2.0 B1.0 B2.1 B1.1\n",
                  {}, {.environment = {.p2p = MegatronCalls::Batch}}));
  EXPECT_EQ(red_nodes_of(graph), (std::set<std::string>{"r0_c2_m0_F"}));
}

// Megatron sends what F1.0 made before rank 0 has exchanged it.
TEST(Draw, AnAddedTransferIsRedWhereItIsInTheWitness) {
  const Parsed graph =
      parse(drawn("capo 1\nmicrobatches 2\nplacement loop\n"
                  "rank 0: F1.0 F1.1 dispatch-F1.0 B1.0 B1.1\nrank 1: F1.0 B1.0 F1.1 B1.1\n",
                  {}, {.environment = {.p2p = MegatronCalls::Batch}}));
  EXPECT_EQ(red_nodes_of(graph),
            (std::set<std::string>{"r0_c1_m0_send_F", "r0_c1_m0_dispatch_F_l0"}));
}

// --- capture and replay --------------------------------------------------------------------------

constexpr const char* kReplayed =
    "capo 1\nranks 2\nmicrobatches 2\nplacement loop\n"
    "rank 0: F1.0 F1.1 B1.0 B1.1\nrank 0 replay: F1.1 F1.0 B1.1 B1.0\n"
    "rank 1: F1.0 B1.0 F1.1 B1.1\nrank 1 replay: F1.1 B1.1 F1.0 B1.0\n";

TEST(Draw, WhatIsReplayedIsDrawnAndTheTitleSaysSo) {
  const std::string dot = drawn(kReplayed);
  EXPECT_NE(dot.find("2 microbatches, as replayed"), std::string::npos) << dot;
  EXPECT_TRUE(edges_of(parse(dot), "order").contains("r0_c1_m1_F r0_c1_m0_F")) << dot;
  EXPECT_EQ(drawn(kTwoRanks).find("as replayed"), std::string::npos);
}

TEST(Draw, TheCaptureIsDrawnWhereItAloneIsWrong) {
  const std::string dot = drawn(
      "capo 1\nranks 2\nmicrobatches 2\nplacement loop\n"
      "rank 0: F1.0 B1.0 F1.1 B1.1\nrank 0 replay: F1.0 F1.1 B1.0 B1.1\n"
      "rank 1: F1.1 F1.0 B1.0 B1.1\nrank 1 replay: F1.0 F1.1 B1.0 B1.1\n");
  EXPECT_NE(dot.find("as captured"), std::string::npos) << dot;
  EXPECT_EQ(edges_of(parse(dot), "witness"), edges_of(parse(drawn(kCycle)), "witness"));
}

// One rank replays what it captures; the finding names entries of both.
TEST(Draw, TheCaptureIsDrawnWhereOneOfTheRanksIsReplayedOtherwise) {
  const std::string dot = drawn(
      "capo 1\nranks 2\nmicrobatches 2\nplacement loop\nrank 0: F1.0 B1.0 F1.1 B1.1\n"
      "rank 1: F1.1 F1.0 B1.0 B1.1\nrank 1 replay: F1.0 B1.0 F1.1 B1.1\n");
  EXPECT_NE(dot.find("as captured"), std::string::npos) << dot;
  EXPECT_EQ(edges_of(parse(dot), "witness"), edges_of(parse(drawn(kCycle)), "witness"));
}

TEST(Draw, AReplayThatIsTheCaptureIsNoneOfItsOwn) {
  const std::string rank = "capo 1\nmicrobatches 1\nrank 0: F1.0 B1.0\n";
  EXPECT_EQ(drawn(rank + "rank 0 replay: F1.0 B1.0\n").find("as "), std::string::npos);
}

// --- one rank ------------------------------------------------------------------------------------

TEST(Draw, WhatOneRankExchangesIsDrawn) {
  for (const char* placement : {"", "placement chain\n"}) {
    const Parsed graph =
        parse(drawn(std::string("capo 1\n") + placement +
                    "rank 0: F1.0 dispatch-F1.0 combine-F1.0 combine-B1.0 dispatch-B1.0 B1.0\n"));
    EXPECT_EQ(
        nodes_of(graph),
        (std::set<std::string>{"r0_c1_m0_F", "r0_c1_m0_dispatch_F_l0", "r0_c1_m0_combine_F_l0",
                               "r0_c1_m0_combine_B_l0", "r0_c1_m0_dispatch_B_l0", "r0_c1_m0_B"}))
        << placement;
  }
}

TEST(Draw, WhatOneRankDoesWithParametersIsDrawn) {
  const Parsed graph = parse(drawn("0UNSHARD,0F0,0B0,0REDUCE_GRAD\n"));
  EXPECT_TRUE(edges_of(graph, "data").contains("r0_c1_unshard r0_c1_m0_F"));
  EXPECT_TRUE(edges_of(graph, "data").contains("r0_c1_m0_B r0_c1_reduce"));
}

// Layers are drawn as they are judged: whole, where nothing is exchanged.
TEST(Draw, AnOverlapOfNothingTakesNoLayerApart) {
  const CheckOptions overlap{.environment = {.ep_overlap = true}};
  EXPECT_EQ(drawn("[1, 1, -1, -1]", {}, overlap), drawn("[1, 1, -1, -1]"));
}

// --- what is left out ----------------------------------------------------------------------------

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

TEST(Draw, AnOrderThatIsWrongByItselfIsDrawnAsItStandsWithItsFinding) {
  const std::string dot = drawn("[1, -1, -1]");
  const Parsed graph = parse(dot);
  EXPECT_EQ(edges_of(graph, "order"),
            (std::multiset<std::string>{"r0_i0_0 r0_i1_0", "r0_i1_0 r0_i2_0"}));
  EXPECT_EQ(red_nodes_of(graph), (std::set<std::string>{"r0_i2_0"}));
  EXPECT_NE(dot.find("error[S15]: `-1` at index 2 is a backward of chunk 1"), std::string::npos)
      << dot;
  EXPECT_NE(dot.find("xlabel=\"S15\""), std::string::npos);
}

TEST(Draw, NothingAtAllIsAPageWithItsVerdict) {
  const std::string dot = drawn("[]");
  EXPECT_EQ(boost::num_vertices(parse(dot)), 0U);
  EXPECT_NE(dot.find("capo: "), std::string::npos) << dot;
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
