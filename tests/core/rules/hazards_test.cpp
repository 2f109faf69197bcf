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
using testing_support::Found;
using testing_support::shows;
using testing_support::warns;

constexpr Aliases kInput{.input = true};
constexpr const char* kLate = "[1, -1, 1, -1.5, -1, -1.5]";

Checked check_plan(const PlanOptions& plan, const std::string& text) {
  return check_in({.plan = plan}, text);
}

Checked check_te_plan(const std::string& text) {
  return check_plan({.kind = PlanKind::Te, .aliases = kInput}, text);
}

TEST(StaticInputReuse, TakesTheOldestThatIsFree) {
  // The third forward gets the input of microbatch 0, whose weight gradient is over.
  EXPECT_TRUE(check_te_plan("[1, 1, -1, -1.5, -1, 1, -1.5, -1, -1.5]").findings().empty());
  EXPECT_EQ(check_te_plan("[1, 1, -1, -1.5, -1, 1, 1, -1.5, -1, -1.5, -1, -1.5]").findings(),
            Found{"B01@1"});
}

TEST(StaticInputReuse, KnowsModulesThatReadIt) {
  const auto findings = [](const Module& module) {
    return check_in(
               {.modules = {.list = {module}, .layers = {{{0}}}}, .plan = {.kind = PlanKind::Te}},
               kLate)
        .of(Family::Buffers)
        .size();
  };
  const ModuleFlags sound{.delay_wgrad = true, .fuse_wgrad_accumulation = true};
  EXPECT_EQ(findings({.name = "m", .kind = ModuleKind::Linear, .flags = sound}), 1u);
  EXPECT_EQ(findings({.name = "m", .kind = ModuleKind::GroupedLinear, .flags = sound}), 1u);
  EXPECT_EQ(findings({.name = "m", .kind = ModuleKind::LayerNormLinear, .flags = sound}), 0u);
  EXPECT_EQ(
      findings({.name = "m", .kind = ModuleKind::Linear, .recipe = Recipe::Mxfp8, .flags = sound}),
      0u);
  EXPECT_EQ(findings({.name = "m",
                      .kind = ModuleKind::GroupedLinear,
                      .recipe = Recipe::Mxfp8,
                      .flags = sound,
                      .splits = Splits::Input}),
            1u)
      << "the sizes of the groups are an input too";
  ModuleFlags gathered = sound;
  gathered.gathered_input = true;
  EXPECT_EQ(findings({.name = "m", .kind = ModuleKind::Linear, .flags = gathered}), 0u);
}

TEST(StaticInputReuse, TellsShapesApart) {
  const auto findings = [](std::int64_t tokens) {
    const ModuleFlags sound{.delay_wgrad = true, .fuse_wgrad_accumulation = true};
    const ModuleTable modules{
        .list = {{.name = "a", .kind = ModuleKind::Linear, .shape = {.tokens = 16}, .flags = sound},
                 {.name = "b",
                  .kind = ModuleKind::Linear,
                  .shape = {.tokens = tokens},
                  .flags = sound}},
        .layers = {{{0}, {1}}}};
    return check_in({.modules = modules, .plan = {.kind = PlanKind::Te}},
                    "[1, -1, 2, -1.5, -2, -2.5]")
        .findings();
  };
  EXPECT_EQ(findings(16), Found{"B01@0"});
  EXPECT_EQ(findings(32), Found{});
}

TEST(StaticInputReuse, UnderCaposPlanIsNone) {
  for (const Aliases aliases : {Aliases{}, kInput, Aliases{true, true}}) {
    const Checked checked = check_plan({.kind = PlanKind::Safe, .aliases = aliases}, kLate);
    EXPECT_TRUE(checked.findings().empty());
    EXPECT_TRUE(checked.accepted());
  }
}

TEST(StaticInputReuse, LooksAtEveryRankByItself) {
  const Checked checked = check_te_plan(
      "capo 1\n"
      "rank 0: F1.0 B1.0 W1.0 F1.1 B1.1 W1.1\n"
      "rank 1: F1.1 B1.1 F1.0 W1.1 B1.0 W1.0\n"
      "rank 2: F1.0 B1.0 F1.1 W1.0 B1.1 W1.1\n");
  ASSERT_EQ(checked.findings(), (Found{"B01@0", "B01@0"}));
  EXPECT_EQ(checked.result.diagnostics.kept().at(1).witness.tasks.at(0).rank, 2);
}

TEST(StaticInputReuse, StandsHereAndNotThere) {
  expect_findings({
      {"ShowsWhoWroteWhoTookAndWhoReads", check_te_plan(kLate), "B01@0",
       shows("error replay: 0:0 1 F(c1,m0), 0:2 1 F(c1,m1), 0:3 -1.5 W(c1,m0)")},
      {"IsNoneWhereTheWeightGradientComesFirst", check_te_plan("[1, -1, -1.5, 1, -1, -1.5]")},
      {"", check_te_plan("[1, 1, -1, -1.5, -1, -1.5]")},
      {"GoesAcrossChunks", check_te_plan("[1, -1, 2, -1.5, -2, -2.5]"), "B01@0"},
      {"ConcernsReadersOfTheInputItself",
       check_plan({.kind = PlanKind::Te, .aliases = Aliases{}}, kLate)},
      {"", check_plan({.kind = PlanKind::Te, .aliases = Aliases{.grad_output = true}}, kLate)},
      {"OfUndeclaredOperandsIsAWarning", check_plan({.kind = PlanKind::Te}, kLate), "B01@0",
       warns()},
      {"OfAListWithoutAPlanIsAWarning", check_plan({}, kLate), "B01@0", warns()},
      {"", check_plan({.aliases = kInput}, kLate), "B01@0", warns()},
      {"", check_plan({}, "[1, -1, -1.5, 1, -1, -1.5]")},
      {"OfAnOrderFileWithoutAPlanIsNotLookedFor",
       check_plan({}, "capo 1\nrank 0: F1 B1 F1 W1 B1 W1\n")},
      {"ShowsEveryLayerOfAChunk", check_te_plan("capo 1\nlayers 2\nrank 0: F1 B1 F1 W1 B1 W1\n"),
       "B01@0 B01@0"},
      {"LeavesReplayOrdersToReplayOrder",
       check_te_plan("capo 1\nrank 0: F1 B1 W1 F1 B1 W1\nrank 0 replay: F1 B1 F1 W1 B1 W1\n"),
       "Y01@2"},
  });
}

constexpr Aliases kGradient{.grad_output = true};
constexpr const char* kLateGradient = "[1, 2, -2, -1, -2.5, -1.5]";

Checked check_te_plan_of_grad_output_reuse(const std::string& text) {
  return check_plan({.kind = PlanKind::Te, .aliases = kGradient}, text);
}

TEST(GradOutputReuse, KnowsModulesThatReadIt) {
  const auto findings = [](const Module& module) {
    return check_in(
               {.modules = {.list = {module}, .layers = {{{0}}}}, .plan = {.kind = PlanKind::Te}},
               kLateGradient)
        .of(Family::Buffers)
        .size();
  };
  const ModuleFlags sound{.delay_wgrad = true, .fuse_wgrad_accumulation = true};
  EXPECT_EQ(findings({.name = "m", .kind = ModuleKind::LayerNormMlp, .flags = sound}), 1u);
  EXPECT_EQ(findings({.name = "m", .kind = ModuleKind::Linear, .flags = sound}), 1u);
  EXPECT_EQ(findings({.name = "m", .kind = ModuleKind::GroupedMlp, .flags = sound}), 0u);
  EXPECT_EQ(
      findings(
          {.name = "m", .kind = ModuleKind::LayerNormMlp, .recipe = Recipe::Mxfp8, .flags = sound}),
      0u);
  ModuleFlags gathered = sound;
  gathered.gathered_grad_output = true;
  EXPECT_EQ(findings({.name = "m", .kind = ModuleKind::LayerNormMlp, .flags = gathered}), 0u);
}

TEST(GradOutputReuse, TellsShapesApart) {
  const auto findings = [](std::int64_t columns) {
    const ModuleFlags sound{.delay_wgrad = true, .fuse_wgrad_accumulation = true};
    const ModuleTable modules{.list = {{.name = "a",
                                        .kind = ModuleKind::LayerNormLinear,
                                        .shape = {.tokens = 16, .ffn = 64},
                                        .flags = sound},
                                       {.name = "b",
                                        .kind = ModuleKind::LayerNormLinear,
                                        .shape = {.tokens = 16, .ffn = columns},
                                        .flags = sound}},
                              .layers = {{{0}, {1}}}};
    return check_in({.modules = modules, .plan = {.kind = PlanKind::Te}}, kLateGradient).findings();
  };
  EXPECT_EQ(findings(64), Found{"B02@2"});
  EXPECT_EQ(findings(32), Found{});
}

TEST(GradOutputReuse, HappensBetweenTheLayersOfOneChunk) {
  // The backward of layer 0 runs behind that of layer 1, within one graph.
  const Checked checked =
      check_te_plan_of_grad_output_reuse("capo 1\nlayers 2\nrank 0: F1 B1 W1\n");
  ASSERT_EQ(checked.findings(), Found{"B02@1"});
  EXPECT_EQ(
      checked.first().message,
      "`W1` at index 2 reads the grad output of chunk 1, layer 1, microbatch 0, which `B1` at "
      "index 1 has overwritten");
}

TEST(GradOutputReuse, StandsHereAndNotThere) {
  expect_findings({
      {"ShowsWhoWroteWhoTookAndWhoReads", check_te_plan_of_grad_output_reuse(kLateGradient),
       "B02@2", shows("error replay: 0:2 -2 B(c2,m0), 0:3 -1 B(c1,m0), 0:4 -2.5 W(c2,m0)")},
      {"IsNoneWhereTheWeightGradientFollowsItsBackward",
       check_te_plan_of_grad_output_reuse("[1, 2, -2, -2.5, -1, -1.5]")},
      {"",
       check_te_plan_of_grad_output_reuse("[1, 2, -2, 1, -2.5, 2, -1, -1.5, -2, -2.5, -1, -1.5]"),
       "", because("a forward between them does not matter")},
      {"ConcernsReadersOfTheGradientItself",
       check_plan({.kind = PlanKind::Te, .aliases = Aliases{}}, kLateGradient)},
      {"", check_plan({.kind = PlanKind::Te, .aliases = Aliases{.input = true}}, kLateGradient)},
      {"WithoutADeclarationIsAWarning", check_plan({.kind = PlanKind::Te}, kLateGradient), "B02@2",
       warns()},
      {"", check_plan({}, kLateGradient), "B02@2", warns()},
      {"UnderCaposPlanIsNone",
       check_plan({.kind = PlanKind::Safe, .aliases = kGradient}, kLateGradient)},
      {"LooksAtEveryRankByItself",
       check_te_plan_of_grad_output_reuse("capo 1\nchunks 2\n"
                                          "rank 0: F1.0 F2.0 B2.0 W2.0 B1.0 W1.0\n"
                                          "rank 1: F1.0 F2.0 B2.0 B1.0 W2.0 W1.0\n"),
       "B02@2"},
      {"StandsBesideStaticInputReuse",
       check_plan({.kind = PlanKind::Te, .aliases = Aliases{true, true}},
                  "[1, -1, 2, -2, -1.5, -2.5]"),
       "B01@0 B02@1"},
  });
}

constexpr Environment kWeightStream{.weight_stream = true};
constexpr Aliases kBoth{.input = true, .grad_output = true};

Checked check_beside(const std::string& text,
                     const PlanOptions& plan = {.kind = PlanKind::Te, .aliases = kBoth}) {
  return check_in({.environment = kWeightStream, .plan = plan}, text);
}

TEST(SlotRace, LeavesWhatIsOverwrittenForCertainToTheRulesOfBuffers) {
  // The forward was launched before the weight gradient, the backward behind it.
  EXPECT_EQ(check_beside("[1, -1, 1, -1.5, -1, -1.5]").findings(), (Found{"B01@0", "E01@1"}));
}

TEST(SlotRace, ConcernsMemoryOfThePool) {
  const Checked checked =
      check_beside("[1, 1, -1, -1.5, -1, -1.5]", {.kind = PlanKind::Te, .aliases = Aliases{}});
  ASSERT_FALSE(checked.findings().empty());
  EXPECT_EQ(
      checked.first().message,
      "`-1.5` at index 3 reads the operands of chunk 1, microbatch 0 while `-1` at index 4 may "
      "overwrite it: nothing orders the two (possible: it depends on the allocator)");
}

TEST(SlotRace, SaysWhereMemoryIsWrittenAndReadByOnePieceOfWork) {
  const Checked checked = check_beside("[1, 2, -2, -2.5, -1, -1.5]",
                                       {.kind = PlanKind::Te, .aliases = Aliases{.input = true}});
  const auto found = checked.of(Family::Streams);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(
      found[1].message,
      "`-2.5` at index 3 reads the scratch of chunk 2, microbatch 0 while `-1` at index 4 may "
      "overwrite it: nothing orders the two (possible: it depends on the allocator)");
  EXPECT_EQ(found[1].labels.size(), 2u);
  EXPECT_EQ(found[1].witness.tasks.front(), (WitnessEntry{0, 3, "-2.5", "W(c2,m0)"}));
  EXPECT_EQ(
      found[2].message,
      "`-1` at index 4 reads the grad input of chunk 1, microbatch 0 while `-2.5` at index 3 may "
      "overwrite it: nothing orders the two (possible: it depends on the allocator)");
}

TEST(SlotRace, WithoutAPlanIsAWarning) {
  const Checked checked = check_beside("[1, -1, 1, -1.5, -1, -1.5]", {.aliases = kBoth});
  for (const Diagnostic& finding : checked.result.diagnostics.kept()) {
    EXPECT_EQ(finding.severity, Severity::Warning);
    EXPECT_TRUE(finding.message.starts_with("under TransformerEngine's reuse of buffers, "));
  }
  EXPECT_EQ(checked.findings(), (Found{"B01@0", "E01@1"}));
  EXPECT_TRUE(checked.accepted());
}

constexpr const char* kSender =
    "capo 1\nplacement chain\n"
    "rank 0: F1.0 send-F1.0 F1.1 send-F1.1 F1.2 send-F1.2 recv-B1.0 B1.0 recv-B1.1 B1.1 recv-B1.2 "
    "B1.2\n"
    "rank 1: recv-F1.0 F1.0 recv-F1.1 F1.1 recv-F1.2 F1.2 B1.0 send-B1.0 B1.1 send-B1.1 B1.2 "
    "send-B1.2\n";

TEST(SlotRace, StandsHereAndNotThere) {
  expect_findings({
      {"ShowsWhatNothingOrders", check_beside("[1, -1, -1.5, 1, -1, -1.5]"), "E01@0 E01@1",
       shows("error replay: 0:0 1 F(c1,m0), 0:3 1 F(c1,m1), 0:2 -1.5 W(c1,m0)")},
      {"IsNoneOnOneStream",
       check_in({.plan = {.kind = PlanKind::Te, .aliases = kBoth}}, "[1, -1, -1.5, 1, -1, -1.5]")},
      {"IsNoneWhereNothingComesBehind", check_beside("[1, -1, -1.5]")},
      {"OfUndeclaredOperandsIsAWarning",
       check_beside("[1, -1, -1.5, 1, -1, -1.5]", {.kind = PlanKind::Te}), "E01@0 E01@1", warns()},
      {"UnderCaposPlanIsNone",
       check_beside("[1, -1, -1.5, 1, -1, -1.5]", {.kind = PlanKind::Safe, .aliases = kBoth})},
      {"IsBetweenASendAndWhatTakesItsMemory", check_in({.plan = {.kind = PlanKind::Te}}, kSender),
       "E01@6"},
      {"", check_in({.plan = {.kind = PlanKind::Safe}}, kSender)},
      {"SeesSendsThatPyTorchAdds",
       check_in({.plan = {.kind = PlanKind::Te}},
                "0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1F1,1F2,1B0,1B1,1B2\n"),
       "E01@3"},
  });
}

TEST(SlotRace, IsNoneWhereAnAnswerSaysThatTheSendIsOver) {
  // Each forward of rank 1 needs one of rank 0, which comes behind the gradient that it got.
  EXPECT_TRUE(check_in({.plan = {.kind = PlanKind::Te}},
                       "capo 1\nplacement chain\n"
                       "rank 0: F1 F1 B1 F1 B1 B1\nrank 1: F1 B1 F1 B1 F1 B1\n")
                  .findings()
                  .empty());
}

TEST(SlotRace, IsNoneWhereMegatronWaits) {
  const std::string order =
      "capo 1\nplacement chain\nrank 0: F1 F1 F1 B1 B1 B1\nrank 1: F1 F1 F1 B1 B1 B1\n";
  const PlanOptions plan{.kind = PlanKind::Te};
  EXPECT_EQ(check_in({.plan = plan}, order).findings(), Found{"E01@3"});
  EXPECT_TRUE(check_in({.environment = {.p2p = MegatronCalls::Batch}, .plan = plan}, order)
                  .findings()
                  .empty());
}

TEST(SlotRace, LooksAtEveryRank) {
  const Checked checked = check_beside(
      "capo 1\n"
      "rank 0: F1.0 B1.0 W1.0 F1.1 B1.1 W1.1\n"
      "rank 1: F1.0 B1.0 W1.0 F1.1 B1.1 W1.1\n");
  std::vector<std::int32_t> ranks;
  for (const Diagnostic& finding : checked.result.diagnostics.kept())
    ranks.push_back(finding.witness.tasks.front().rank);
  EXPECT_EQ(ranks, (std::vector<std::int32_t>{0, 0, 1, 1}));
}

}  // namespace
}  // namespace capo
