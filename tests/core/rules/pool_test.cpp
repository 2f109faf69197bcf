// The rules of core/rules/buffers.cpp: where each finding stands, and where there is none.
//
// The words of the findings are compared by tests/corpus/rules.

#include "tests/support/check_text.h"
#include "tests/support/finding_rows.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::because;
using testing_support::check_in;
using testing_support::Checked;
using testing_support::expect_findings;
using testing_support::fails;
using testing_support::Found;
using testing_support::shows;

constexpr const char* kLate = "[1, 1, 1, 2, 2, 2, -2, -2, -2, -1, -1, -1]";

Checked check_chain(const std::string& text, std::optional<PlanKind> plan = PlanKind::Te) {
  return check_in({.topology = Topology::Chain, .plan = {.kind = plan, .aliases = Aliases{}}},
                  text);
}

TEST(PoolReuse, DoesNotDependOnOperands) {
  for (const std::optional<Aliases>& aliases :
       {std::optional<Aliases>(), std::optional(Aliases{true, true})}) {
    const Checked checked = check_in(
        {.topology = Topology::Chain, .plan = {.kind = PlanKind::Te, .aliases = aliases}}, kLate);
    EXPECT_EQ(checked.findings(), (Found{"B03@6", "B03@7", "B03@8"}));
    EXPECT_FALSE(checked.accepted());
  }
}

// A list in which TE's reuse may hurt is looked at as a whole.
TEST(PoolReuse, WithoutAPlanIsAWarning) {
  const Checked checked = check_in({.topology = Topology::Chain}, "[1, 2, -2, -1, -2.5]");
  const auto found = checked.of(Family::Buffers);
  ASSERT_FALSE(found.empty());
  for (const Diagnostic& finding : found) {
    EXPECT_EQ(finding.severity, Severity::Warning);
    EXPECT_TRUE(finding.message.starts_with("under TransformerEngine's reuse of buffers, "));
  }
  EXPECT_TRUE(checked.accepted());
}

TEST(PoolReuse, StandsHereAndNotThere) {
  expect_findings({
      {"ShowsWhoWroteWhoTookAndWhoReads", check_chain(kLate), "B03@6 B03@7 B03@8",
       shows("error replay: 0:6 -2 B(c2,m0), 0:8 -2 B(c2,m2), 0:9 -1 B(c1,m0)")},
      {"IsNoneWhereTheGradientIsReadInTime",
       check_chain("[1, 1, 1, 2, 2, 2, -2, -1, -2, -1, -2, -1]")},
      {"", check_chain("[1, 1, 2, 2, -2, -2, -1, -1]"), "",
       because("freed, and nobody has taken it yet")},
      {"MayBeAForwardsDoing", check_chain("[1, 1, 2, 2, -2, -2, 1, -1, -1, 2, -2, -1]"), "B03@4"},
      {"ConcernsChunksThatAreWired", check_in({.plan = {.kind = PlanKind::Te}}, kLate)},
      {"WithoutAPlanIsNotLookedFor", check_chain(kLate, std::nullopt)},
      {"UnderCaposPlanIsNone", check_chain(kLate, PlanKind::Safe)},
  });
}

TEST(PoolReuse, IsSeenAtTheTurnOfAV) {
  const Checked checked =
      check_in({.plan = {.kind = PlanKind::Te}},
               "capo 1\nchunks 2\nplacement v\n"
               "rank 0: F1.0 F1.1 F1.2 F2.0 B2.0 F2.1 B2.1 F2.2 B2.2 B1.0 B1.1 B1.2\n"
               "rank 1: F1.0 F1.1 F1.2 F2.0 F2.1 F2.2 B2.0 B2.1 B2.2 B1.0 B1.1 B1.2\n");
  Found readers;
  for (const Diagnostic& finding : checked.result.diagnostics.kept()) {
    if (finding.rule == "B03") readers.push_back(finding.witness.tasks.back().text);
  }
  EXPECT_EQ(readers, (Found{"B1.0", "B1.1", "B1.2"})) << "of rank 1, which holds the turn";
}

TEST(PoolReuse, IsOfTheFirstLayerOfAChunk) {
  const Checked checked = check_in({.topology = Topology::Chain, .plan = {.kind = PlanKind::Te}},
                                   "capo 1\nchunks 2\nlayers 2\n"
                                   "rank 0: F1 F1 F1 F2 F2 F2 B2 B2 B2 B1 B1 B1\n");
  ASSERT_FALSE(checked.findings().empty());
  for (const Diagnostic& finding : checked.result.diagnostics.kept()) {
    EXPECT_EQ(finding.rule, "B03");
    EXPECT_NE(finding.message.find("the grad input of chunk 2, layer 0, microbatch"),
              std::string::npos)
        << finding.message;
  }
}

constexpr const char* kByLayers = "[1, 2, 1, 2, -2, -1, -2, -1]";

Checked check_layers(std::vector<std::int32_t> model_chunks, const std::string& text,
                     PlanKind plan = PlanKind::Te) {
  return check_in({.plan = {.kind = plan, .model_chunks = std::move(model_chunks)}}, text);
}

constexpr const char* kHead =
    "capo 1\nplacement chain\n"
    "rank 0: F1.0 send-F1.0 F1.1 send-F1.1 F1.2 send-F1.2 recv-B1.0 B1.0 recv-B1.1 B1.1 recv-B1.2 "
    "B1.2\n"
    "rank 1: recv-F1.0 F1.0 recv-F1.1 F1.1 recv-F1.2 F1.2 ";

Checked check_sends(const std::string& backwards, PlanKind plan = PlanKind::Te) {
  return check_in({.plan = {.kind = plan}}, kHead + backwards + "\n");
}

TEST(P2pWindow, LooksAtSendsThatComeLate) {
  const Checked checked = check_sends("B1.0 B1.1 B1.2 send-B1.0 send-B1.1 send-B1.2");
  ASSERT_EQ(checked.findings(), Found{"B04@6"});
  EXPECT_EQ(checked.first().witness.tasks,
            (std::vector<WitnessEntry>{{1, 6, "B1.0", "B(c1,m0)"},
                                       {1, 8, "B1.2", "B(c1,m2)"},
                                       {1, 9, "send-B1.0", "send-B(c1,m0)"}}));
}

TEST(P2pWindow, StandsHereAndNotThere) {
  const std::string order =
      "1 1 1 1 2 3 2 -3 3 -2 2 -3 3 -2 2 -3 3 -2 1 -3 -2 1 -1 1 -1 1 -1 2 -1 3 2 -3 3 -2 2 -3 3 -2 "
      "2 -3 3 -2 -3 -2 -1 -1 -1 -1";
  expect_findings({
      {"ShowsWhatOverwritesBeforeTheNextModelChunkIsOver",
       check_layers({1, 2}, "[1, 2, 3, 1, 2, 3, -3, -2, -3, 1, -2, -1, 2, 3, -1, -3, -2, -1]"),
       "B04@7 B04@14", shows("error replay: 0:7 -2 B(c2,m0), 0:9 1 F(c1,m2), 0:10 -2 B(c2,m1)")},
      {"CountsTheGraphAtWhoseEndTheSendIsOver", check_layers({2}, kByLayers), "B04@5",
       because("and no race")},
      {"EndsWithTheStepWhereNoFurtherChunkOfTheModelEndsIt",
       check_layers({3}, "[1, -1, 2, -2, 3, -3]"), "B04@1",
       shows("error replay: 0:1 -1 B(c1,m0), 0:4 3 F(c3,m0), 0:5 -3 B(c3,m0)")},
      {"", check_layers({1, 1, 1}, "[1, -1, 2, -2, 3, -3]")},
      {"", check_layers({3}, "[1, -1, 2, -2, 3, -3]", PlanKind::Safe)},
      {"IsNoneWhereChunksAreThoseOfTheModel", check_layers({1, 1}, kByLayers)},
      {"", check_layers({}, kByLayers), "", because("nothing is said of sends")},
      {"IsNoneWhereOneGraphHoldsAllLayers",
       check_layers({1}, "capo 1\nlayers 3\nrank 0: F1 F1 F1 B1 B1 B1\n")},
      {"HappensInTheOrderOfPullRequest2376", check_layers({1, 2}, order),
       "B04@9 B04@13 B04@17 B04@28 B04@33 B04@37 B04@41", fails()},
      {"", check_layers({1, 1, 1}, order)},
      {"LeavesSendsThatNobodyWaitsForToSlotRace",
       check_sends("B1.0 send-B1.0 B1.1 send-B1.1 B1.2 send-B1.2"), "E01@6"},
      {"AcceptsSendsThatAreLateButInTime",
       check_in({.plan = {.kind = PlanKind::Te}},
                "capo 1\nplacement chain\n"
                "rank 0: F1.0 send-F1.0 F1.1 send-F1.1 recv-B1.0 B1.0 recv-B1.1 B1.1\n"
                "rank 1: recv-F1.0 F1.0 recv-F1.1 F1.1 B1.0 B1.1 send-B1.0 send-B1.1\n")},
      {"WithoutAPlanIsNotLookedFor", check_in({.plan = {.model_chunks = {2}}}, kByLayers)},
      {"UnderCaposPlanIsNone", check_layers({2}, kByLayers, PlanKind::Safe)},
      {"", check_sends("B1.0 B1.1 B1.2 send-B1.0 send-B1.1 send-B1.2", PlanKind::Safe)},
  });
}

TEST(P2pWindow, LooksAtEveryRank) {
  const Checked checked = check_layers({2},
                                       "capo 1\nchunks 2\n"
                                       "rank 0: F1.0 F2.0 F1.1 F2.1 B2.0 B1.0 B2.1 B1.1\n"
                                       "rank 1: F1.0 F2.0 F1.1 F2.1 B2.1 B1.1 B2.0 B1.0\n");
  ASSERT_EQ(checked.findings(), (Found{"B04@5", "B04@5"}));
  EXPECT_EQ(
      checked.result.diagnostics.kept().at(1).message,
      "the grad input of chunk 1, microbatch 1 may be overwritten by `B1.0` at index 7 of rank "
      "1, and its send is over for certain only at the end of that (possible: it depends on the "
      "allocator)");
}

}  // namespace
}  // namespace capo
