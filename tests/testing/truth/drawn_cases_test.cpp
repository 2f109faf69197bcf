// Each way to draw a case keeps its promise: sound cases are accepted, faults are reported by their
// rule, and all can be run as they stand.

#include "testing/truth/drawn_cases.h"
#include "core/base/assert.h"
#include "core/rules/check.h"
#include "core/rules/undeclared.h"
#include "core/text/order_text.h"
#include "run/setup/complete_model.h"
#include "tests/testing/share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <set>
#include <string>
#include <utility>

namespace capo::testing {
namespace {

constexpr std::uint64_t kDraws = 150;

Dice dice_of(std::uint64_t seed) {
  return Dice(rc::Random(seed));
}

CheckResult verdict_on(const TruthCase& made) {
  return check(made.input, run::complete_model(made.declared, made.input.schedule).options);
}

bool some_chunk_is(Delay delay, const Schedule& schedule) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [&](const RankOrder& rank) {
    return std::find(rank.delay->begin(), rank.delay->end(), delay) != rank.delay->end();
  });
}

struct SoundDraw {
  const char* name;
  TruthCase (*draw)(Dice&);
  PlanKind plan;
};

void PrintTo(const SoundDraw& of, std::ostream* out) {
  *out << of.name;
}

class SoundCases : public ::testing::TestWithParam<SoundDraw> {};

TEST_P(SoundCases, AreAcceptedUnderTheirPlan) {
  std::set<std::string> orders;
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    Dice dice = dice_of(seed);
    const TruthCase made = GetParam().draw(dice);
    EXPECT_EQ(verdict_on(made).verdict, Verdict::Accepted) << seed << ": " << made.words;
    EXPECT_EQ(made.declared.plan.kind, GetParam().plan);
    EXPECT_TRUE(made.fault.empty());
    orders.insert(made.words);
  }
  EXPECT_GT(orders.size(), 25U) << "nearly always the same";
}

INSTANTIATE_TEST_SUITE_P(
    Truth, SoundCases,
    ::testing::Values(SoundDraw{"Published", draw_published_case, PlanKind::Safe},
                      SoundDraw{"Order", draw_order_case, PlanKind::Safe},
                      SoundDraw{"Schedule", draw_schedule_case, PlanKind::Safe},
                      SoundDraw{"Planned", draw_planned_case, PlanKind::Te},
                      SoundDraw{"Declared", draw_declared_case, PlanKind::Te},
                      SoundDraw{"Spared", draw_spared_case, PlanKind::Te}),
    [](const auto& of) { return std::string(of.param.name); });

TEST(DrawnCases, AtWhichCapoBreaksAreHandedOn) {
  Dice dice = dice_of(1);
  std::string asked;
  std::size_t draws = 0;
  const TruthCase made = draw_reuse_case(dice, [&](const TruthCase& of) -> bool {
    asked = of.words;
    if (++draws == 3) throw InternalError("capo's own invariant does not hold");
    return false;
  });
  EXPECT_EQ(draws, 3U);
  EXPECT_EQ(made.words, asked);
}

TEST(DrawnCases, ThatAreSparedHaveALateWeightGradientOrAreOfAnotherSort) {
  std::size_t lists = 0;
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    Dice dice = dice_of(seed);
    const TruthCase made = draw_spared_case(dice);
    if (made.input.form != Form::TeList) continue;
    ++lists;
    const auto& order = made.input.schedule.ranks.front().order;
    std::size_t late = 0;
    for (std::size_t at = 0; at < order.size(); ++at) {
      if (order[at].kind != Kind::BackwardWeight) continue;
      late += order[at - 1].kind != Kind::Backward || order[at - 1].chunk != order[at].chunk ||
                      order[at - 1].microbatch != order[at].microbatch
                  ? 1
                  : 0;
    }
    EXPECT_GT(late, 0U) << made.words;
  }
  EXPECT_GT(lists, kDraws / 2);
  Dice dice = dice_of(1);
  const TruthCase other = draw_spared_case(dice, [](const TruthCase&) { return false; });
  EXPECT_EQ(other.input.form, Form::OrderFile) << "there was none";
}

TEST(DrawnCases, OfAScheduleReplayWhatTheyCapture) {
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    Dice dice = dice_of(seed);
    for (const RankOrder& rank : draw_schedule_case(dice).input.schedule.ranks)
      EXPECT_FALSE(rank.replay);
  }
}

TEST(DrawnCases, ThatAreUnwiredDelayInEveryWayOrNot) {
  std::set<std::pair<bool, bool>> delays;
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    Dice dice = dice_of(seed);
    const Schedule schedule = draw_unwired_declared(dice).schedule;
    EXPECT_EQ(schedule.topology, Topology::Independent);
    delays.insert({some_chunk_is(Delay::Always, schedule), some_chunk_is(Delay::Mixed, schedule)});
  }
  EXPECT_EQ(delays.size(), 4U);
}

TEST(DrawnCases, HaveLayersOfWhichEachReadsWhatTheLastMade) {
  bool grouped = false;
  bool routed = false;
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    Dice dice = dice_of(seed);
    Declared declared = draw_unwired_declared(dice);
    make_runnable(dice, declared);
    EXPECT_FALSE(has_composites(declared.schedule));
    const Module& first = declared.options.modules.list.front();
    for (const Module& module : declared.options.modules.list) {
      EXPECT_EQ(module.dtype, first.dtype);
      EXPECT_EQ(module.shape.tokens, first.shape.tokens);
      EXPECT_EQ(module.shape.hidden, first.shape.hidden);
      const bool attention = is_attention(*module.kind);
      if (attention || has_two_halves(*module.kind)) {
        EXPECT_EQ(*module.shape.heads % *module.shape.kv_heads, 0);
        EXPECT_EQ(*module.shape.tokens % *module.shape.sequence, 0);
      }
      EXPECT_TRUE(attention || module.shape.ffn == module.shape.hidden);
      if (has_router(module)) {
        EXPECT_LE(*module.shape.top_k, *module.shape.groups);
        EXPECT_FALSE(module.flags.bias);
        EXPECT_FALSE(is_grouped(*module.kind));
      }
      EXPECT_TRUE(module.flags.input_requires_grad);
      grouped = grouped || is_grouped(*module.kind);
      routed = routed || has_router(module);
    }
  }
  EXPECT_TRUE(grouped);
  EXPECT_TRUE(routed);
}

TEST(DrawnCases, FillShapesOnlyWhereThereIsNone) {
  const Module whole{.name = "whole",
                     .kind = ModuleKind::Linear,
                     .dtype = DataType::Bf16,
                     .shape = {.tokens = 8, .hidden = 16, .ffn = 16}};
  Declared declared;
  declared.options.modules.list = {whole, {.name = "bare"}, {.name = "wide", .shape = {.ffn = 32}}};
  fill_shapes(declared);
  const auto& filled = declared.options.modules.list;
  EXPECT_EQ(filled[1].dtype, DataType::Bf16);
  EXPECT_EQ(filled[1].shape.tokens, 8);
  EXPECT_EQ(filled[1].shape.hidden, 16);
  EXPECT_EQ(filled[1].shape.ffn, 16);
  EXPECT_EQ(filled[2].shape.hidden, 16);
  EXPECT_EQ(filled[2].shape.ffn, 32);
}

TEST(DrawnCases, AreReadFromTheirWords) {
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    Dice dice = dice_of(seed);
    const TruthCase made = draw_declared_case(dice);
    EXPECT_EQ(print_order_file(made.input.schedule), made.words);
    EXPECT_FALSE(made.module.empty());
  }
}

TEST(FaultyCases, OfReuseAreMostlyAtFault) {
  std::uint64_t rejected = 0;
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    Dice dice = dice_of(seed);
    const TruthCase made = draw_reuse_case(dice);
    EXPECT_EQ(made.made, Made::Drawn);
    EXPECT_EQ(made.declared.plan.kind, PlanKind::Te);
    const Module& module = made.declared.modules.list.front();
    EXPECT_FALSE(module.flags.bias);
    EXPECT_TRUE(module.kind == ModuleKind::Linear || module.kind == ModuleKind::GroupedLinear ||
                module.kind == ModuleKind::LayerNormLinear);
    if (verdict_on(made).verdict == Verdict::Rejected) ++rejected;
  }
  EXPECT_GT(rejected, kDraws / 2);
  EXPECT_LE(rejected, kDraws);
}

class FaultyCases : public ::testing::TestWithParam<SoundDraw> {};

TEST_P(FaultyCases, AreRejectedByTheRuleOfTheFault) {
  std::set<std::string> faults;
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    Dice dice = dice_of(seed);
    const TruthCase made = GetParam().draw(dice);
    EXPECT_EQ(made.made, Made::Faulty);
    EXPECT_TRUE(made.declared.plan.kind) << "nothing could be run";
    EXPECT_TRUE(made.input.schedule.topology == Topology::Independent ||
                std::all_of(made.declared.modules.list.begin(), made.declared.modules.list.end(),
                            [](const Module& module) { return module.flags.input_requires_grad; }));
    const CheckResult result = verdict_on(made);
    EXPECT_EQ(result.verdict, Verdict::Rejected) << seed << ": " << made.fault;
    const auto& findings = result.diagnostics.kept();
    EXPECT_TRUE(std::any_of(findings.begin(), findings.end(),
                            [&](const Diagnostic& finding) {
                              return finding.rule == made.rule &&
                                     finding.severity == Severity::Error;
                            }))
        << seed << ": " << made.fault << " without " << made.rule;
    faults.insert(made.fault);
  }
  EXPECT_GT(faults.size(), 4U) << "nearly always the same fault";
}

INSTANTIATE_TEST_SUITE_P(Truth, FaultyCases,
                         ::testing::Values(SoundDraw{"Plan", draw_plan_fault_case, PlanKind::Te},
                                           SoundDraw{"Module", draw_module_fault_case,
                                                     PlanKind::Te}),
                         [](const auto& of) { return std::string(of.param.name); });

TEST(DrawnCases, OfRanksWhoseCommunicationIsNotDeclaredSayOneThingOfItOrNothing) {
  std::array<std::size_t, 2> stated{};
  std::size_t rejected = 0;
  constexpr std::size_t kMany = 2'000;
  for (std::uint64_t seed = 0; seed < kMany; ++seed) {
    Dice dice = dice_of(seed);
    const TruthCase made = draw_undeclared_case(dice);
    const Environment& environment = made.declared.environment;
    ASSERT_TRUE(has_undeclared(made.input.schedule, environment));
    EXPECT_EQ(made.declared.plan.kind, PlanKind::Te);
    EXPECT_EQ(made.made, Made::Drawn);
    stated[0] += environment.communicators ? 1 : 0;
    stated[1] += environment.transfers ? 1 : 0;
    if (seed < kDraws) rejected += verdict_on(made).verdict == Verdict::Rejected ? 1 : 0;
  }
  for (const std::size_t count : stated) EXPECT_TRUE(is_share(count, kMany, 1.0 / 4));
  EXPECT_GT(rejected, kDraws / 4);
  EXPECT_LT(rejected, kDraws);
}

}  // namespace
}  // namespace capo::testing
