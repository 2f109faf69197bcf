#include "sim/costs.h"
#include "tests/sim/simulated.h"

#include <gtest/gtest.h>

#include <cmath>

namespace capo {
namespace {

using simulated::costs;

std::string refusal(const std::string& text) {
  const auto read = read_costs(text);
  return read ? "" : read.error();
}

TEST(Costs, WithoutAnythingATaskTakesOneAndALinkNothing) {
  const Costs none;
  EXPECT_EQ(none.of_chunk(0, 1, 1), TaskCosts{});
  EXPECT_EQ(none.between(0, 1).total(), 0);
  EXPECT_TRUE(none.uniform());
}

TEST(Costs, TheLastSettingWinsAndANarrowScopeIsNoBetter) {
  const Costs all = costs("f=12,b=13", "r0:f=14", "f=3");
  EXPECT_EQ(all.of_chunk(0, 1, 1).forward, 3);
  EXPECT_EQ(costs("f=3", "r0:f=14").of_chunk(0, 1, 1).forward, 14);
  EXPECT_EQ(costs("f=3", "r0:f=14").of_chunk(1, 1, 1).forward, 3);
  EXPECT_FALSE(costs("r0:f=14").uniform());
}

TEST(Costs, AChunkIsTheSumOfItsLayers) {
  const Costs all = costs("f=12", "r1.c2.l0:f=5");
  EXPECT_EQ(all.of_layer(0, 2, 0, 3).forward, 4);
  EXPECT_EQ(all.of_layer(1, 2, 0, 3).forward, 5);
  EXPECT_EQ(all.of_chunk(1, 2, 3).forward, 5 + 4 + 4);
  EXPECT_EQ(all.of_chunk(1, 1, 3).forward, 12);
}

TEST(Costs, LinksHaveLatencyAndBandwidth) {
  const Costs all = costs("comm=2,bw=10,bytes=50", "r0>r1:comm=1", "r1>r0:bw=100");
  EXPECT_EQ(all.between(2, 3).total(), 2 + 5);
  EXPECT_EQ(all.between(0, 1).total(), 1 + 5);
  EXPECT_EQ(all.between(1, 0).total(), 2 + 0.5);
  EXPECT_EQ(all.between(1, 0).occupied(), 0.5);
}

TEST(Costs, ALinkHasBothDirectionsUnlessAnArrowSaysOne) {
  const Costs both = costs("comm=2", "r0-r1:comm=5");
  EXPECT_EQ(both.between(0, 1).total(), 5);
  EXPECT_EQ(both.between(1, 0).total(), 5);
  EXPECT_EQ(both.between(1, 2).total(), 2);
  const Costs one = costs("comm=2", "r0-r1:comm=5", "r1>r0:comm=7");
  EXPECT_EQ(one.between(0, 1).total(), 5);
  EXPECT_EQ(one.between(1, 0).total(), 7);
  EXPECT_EQ(costs("r1->r0:comm=7").between(0, 1).total(), 0);
  EXPECT_EQ(costs("r1->r0:comm=7").between(1, 0).total(), 7);
}

TEST(Costs, OfARankAreSharedByItsChunks) {
  Costs all = costs("f=12,b=8,dispatch=4,comm=3,experts=0.25,unshard=2", "r1:f=20", "r1.c2:w=6",
                    "r0.c1.l0:b=5");
  all.per = CostPer::Rank;
  all.shares = {0.5, 0.25};
  EXPECT_EQ(all.of_chunk(0, 2, 1).forward, 6);
  EXPECT_EQ(all.of_chunk(1, 2, 1).forward, 5);
  EXPECT_EQ(all.of_chunk(0, 2, 1).weight, 0.5) << "the default is of a rank as well";
  EXPECT_EQ(all.of_chunk(0, 1, 1).dispatch, 2);
  EXPECT_EQ(all.of_chunk(1, 2, 1).weight, 6) << "a scope with a chunk is about the chunk";
  EXPECT_EQ(all.of_chunk(0, 1, 1).backward, 5) << "and one with a layer about the layer";
  EXPECT_EQ(all.of_chunk(0, 1, 1).experts, 0.25) << "a share is no time";
  EXPECT_EQ(all.of_chunk(0, 1, 1).unshard, 2);
  EXPECT_EQ(all.between(0, 1).total(), 3);
  EXPECT_FALSE(all.uniform());
}

TEST(Costs, OfAModelFileAreSharedByNothing) {
  Model model;
  model.modules.list = {{.name = "mlp", .cost = {.forward = 3, .backward = 4, .weight = 5}}};
  model.modules.layers = {{{0}}};
  auto stated = costs_of(model);
  ASSERT_TRUE(stated.has_value());
  stated->per = CostPer::Rank;
  stated->shares = {0.5};
  EXPECT_EQ(stated->of_chunk(0, 1, 2).forward, 6);
}

TEST(Costs, AModelFileStatesLayersAndFlagsOverrideIt) {
  Model model;
  model.modules.list = {{.name = "mlp", .cost = {.forward = 3, .backward = 4, .weight = 5}}};
  model.modules.layers = {{{0}}};
  model.transfer = {.latency = 7, .bandwidth = 2, .bytes = 4};
  auto stated = costs_of(model);
  ASSERT_TRUE(stated.has_value());
  EXPECT_EQ(stated->of_chunk(0, 1, 2).backward, 8);
  EXPECT_EQ(stated->between(0, 1).total(), 9);
  stated->set({.key = CostSetting::Key::Backward, .value = 10});
  EXPECT_EQ(stated->of_chunk(0, 1, 2).backward, 10);
  EXPECT_EQ(stated->of_chunk(0, 1, 2).forward, 6);

  model.modules.list.front().cost.weight.reset();
  EXPECT_EQ(costs_of(model).error(), "module `mlp` has no cost.weight");
}

TEST(Costs, OfAReductionAddUpOverTheLayersOfAChunkAndAreNeverShared) {
  Model model;
  model.modules.list = {
      {.name = "mlp", .cost = {.forward = 3, .backward = 4, .weight = 5, .reduce = 6}}};
  model.modules.layers = {{{0}}};
  auto stated = costs_of(model);
  ASSERT_TRUE(stated.has_value());
  EXPECT_EQ(stated->of_chunk(0, 1, 2).reduce, 12);
  stated->shares = {0.5};
  stated->set({.key = CostSetting::Key::Reduce, .value = 10});
  EXPECT_EQ(stated->of_chunk(0, 1, 2).reduce, 10) << "of a chunk, however many a rank has";
  stated->set({.scope = {.layer = 1}, .key = CostSetting::Key::Reduce, .value = 1});
  EXPECT_EQ(stated->of_chunk(0, 1, 2).reduce, 5 + 1);
}

TEST(Costs, RestIsAShareThatLayersHaveOfTheirOwn) {
  EXPECT_EQ(refusal("rest=1"), "rest is from 0 to below 1");
  EXPECT_EQ(refusal("rest=0.999"), "");
  EXPECT_EQ(refusal("r0-r1:rest=0.1"), "rest is said of tasks, not of a link");
  Costs all = costs("f=12", "l1:rest=0.5");
  EXPECT_TRUE(all.tell_rest());
  EXPECT_EQ(all.of_chunk(0, 1, 2).forward, 12) << "nobody has said how much devices are in use";
  all.used = {0.5, 1};
  EXPECT_EQ(all.of_chunk(0, 1, 2).forward, 6 + 6 * std::cbrt(0.5));
  EXPECT_EQ(all.of_chunk(1, 1, 2).forward, 12);
  EXPECT_FALSE(costs("f=12,rest=0").tell_rest());
  all.alike = true;
  EXPECT_FALSE(all.tell_rest());
}

TEST(Costs, PacesAreOfRanks) {
  EXPECT_EQ(refusal("r1:pace=0.05"), "pace is from 0.1 to 10");
  EXPECT_EQ(refusal("pace=11"), "pace is from 0.1 to 10");
  EXPECT_EQ(refusal("r0:pace=0.1,pace=10"), "");
  EXPECT_EQ(refusal("r0-r1:pace=2"), "pace is said of tasks, not of a link");
  Model model;
  model.modules.list = {
      {.name = "mlp", .cost = {.forward = 3, .backward = 4, .weight = 5, .dispatch = 7}}};
  model.modules.layers = {{{0}}};
  model.paces = {1, 2};
  auto stated = costs_of(model);
  ASSERT_TRUE(stated.has_value());
  EXPECT_FALSE(stated->uniform());
  EXPECT_EQ(stated->of_chunk(0, 1, 2).forward, 6);
  EXPECT_EQ(stated->of_chunk(1, 1, 2).forward, 12);
  EXPECT_EQ(stated->of_chunk(1, 1, 2).dispatch, 14) << "an exchange moves bytes";
  EXPECT_EQ(stated->of_chunk(2, 1, 2).forward, 6) << "nothing is said of it";
  stated->set({.scope = {.rank = 1}, .key = CostSetting::Key::Pace, .value = 1.5});
  EXPECT_EQ(stated->of_chunk(1, 1, 1).weight, 7.5);
}

TEST(Costs, OfAutogradAddUpAndEndWhereABackwardIsStated) {
  Model model;
  model.modules.list = {
      {.name = "mlp", .cost = {.forward = 3, .backward = 4, .weight = 5, .autograd = 6}}};
  model.modules.layers = {{{0}}};
  auto stated = costs_of(model);
  ASSERT_TRUE(stated.has_value());
  EXPECT_FALSE(stated->halves_hand_dummies);
  EXPECT_EQ(stated->of_chunk(0, 1, 2).autograd, 12);
  EXPECT_EQ(stated->of_chunk(0, 1, 2).backward, 8);
  stated->set({.key = CostSetting::Key::Weight, .value = 10});
  EXPECT_EQ(stated->of_chunk(0, 1, 2).autograd, 12);
  stated->set({.key = CostSetting::Key::Backward, .value = 10});
  EXPECT_EQ(stated->of_chunk(0, 1, 2).autograd, 0);
  model.plan.kind = PlanKind::Te;
  EXPECT_TRUE(costs_of(model)->halves_hand_dummies);
}

TEST(Costs, OfAWholeBackwardAddUpUntilAHalfIsStated) {
  Model model;
  model.modules.list = {
      {.name = "mlp",
       .cost = {.forward = 3, .backward = 4, .weight = 5, .autograd = 6, .whole = 8}}};
  model.modules.layers = {{{0}}};
  auto stated = costs_of(model);
  ASSERT_TRUE(stated.has_value());
  EXPECT_EQ(stated->of_chunk(0, 1, 1).more_of_whole, -1);
  EXPECT_EQ(stated->of_chunk(0, 1, 2).more_of_whole, -2);
  stated->set({.key = CostSetting::Key::Weight, .value = 10});
  EXPECT_EQ(stated->of_chunk(0, 1, 2).more_of_whole, 12) << "its own dummy gradients alone";
  stated->set({.key = CostSetting::Key::Backward, .value = 10});
  EXPECT_EQ(stated->of_chunk(0, 1, 2).more_of_whole, 0);
  model.modules.list[0].cost.whole = std::nullopt;
  EXPECT_EQ(costs_of(model)->of_chunk(0, 1, 2).more_of_whole, 12);
}

TEST(Costs, OfQuantizationAddUpUntilWhatTheyArePartOfIsStated) {
  Model model;
  model.modules.list = {{.name = "mlp",
                         .cost = {.forward = 3,
                                  .backward = 4,
                                  .weight = 5,
                                  .quantize_forward = 1,
                                  .quantize_backward = 2}}};
  model.modules.layers = {{{0}}};
  auto stated = costs_of(model);
  ASSERT_TRUE(stated.has_value());
  EXPECT_TRUE(stated->tell_quantization());
  EXPECT_EQ(stated->of_chunk(0, 1, 2).quantize_forward, 2);
  EXPECT_EQ(stated->of_chunk(0, 1, 2).quantize_backward, 4);
  EXPECT_EQ(stated->of_chunk(0, 1, 2).forward, 6) << "of which it is a part";
  stated->set({.key = CostSetting::Key::Weight, .value = 10});
  EXPECT_EQ(stated->of_chunk(0, 1, 2).quantize_backward, 4);
  stated->set({.key = CostSetting::Key::Forward, .value = 10});
  EXPECT_EQ(stated->of_chunk(0, 1, 2).quantize_forward, 0);
  EXPECT_EQ(stated->of_chunk(0, 1, 2).quantize_backward, 4);
  stated->set({.key = CostSetting::Key::Backward, .value = 10});
  EXPECT_EQ(stated->of_chunk(0, 1, 2).quantize_backward, 0);
  model.modules.list[0].cost.quantize_forward = model.modules.list[0].cost.quantize_backward = {};
  EXPECT_FALSE(costs_of(model)->tell_quantization());
}

TEST(Costs, AFurtherWeightGradientOfACallTakesAShare) {
  EXPECT_EQ(Costs().of_chunk(0, 1, 1).fuse, 1);
  Costs costs;
  costs.set({.key = CostSetting::Key::Fuse, .value = 0.25});
  EXPECT_EQ(costs.of_chunk(0, 1, 3).fuse, 0.25) << "a share is divided by nothing";
  costs.set({.scope = {.rank = 1}, .key = CostSetting::Key::Fuse, .value = 2});
  EXPECT_EQ(costs.of_chunk(1, 1, 1).fuse, 2);
  EXPECT_EQ(costs.of_chunk(0, 1, 1).fuse, 0.25);
}

TEST(Costs, TheShareOfAChunkIsThatOfItsLayersWeights) {
  Model model;
  model.modules.list = {
      {.name = "a", .cost = {.forward = 1, .backward = 1, .weight = 3, .fuse = 0.5}},
      {.name = "b", .cost = {.forward = 1, .backward = 1, .weight = 1}}};
  model.modules.layers = {{{0, 1}}};
  const auto stated = costs_of(model);
  ASSERT_TRUE(stated.has_value());
  EXPECT_EQ(stated->of_chunk(0, 1, 2).fuse, (3 * 0.5 + 1) / 4);
}

TEST(Costs, WhatIsNoCostIsRefusedByName) {
  EXPECT_NE(refusal("").find("`` is not a cost"), std::string::npos);
  EXPECT_NE(refusal("g=1").find("`g=1` is not a cost"), std::string::npos);
  EXPECT_NE(refusal("f").find("`f` is not a cost"), std::string::npos);
  EXPECT_NE(refusal("f=x").find("`f=x` is not a cost"), std::string::npos);
  EXPECT_NE(refusal("f=1,").find("`` is not a cost"), std::string::npos);
  EXPECT_EQ(refusal("f=-1"), "f is no number from 0 to 1e12");
  EXPECT_EQ(refusal("f=nan"), "f is no number from 0 to 1e12");
  EXPECT_EQ(refusal("f=1e13"), "f is no number from 0 to 1e12");
  EXPECT_EQ(refusal("f=1e12"), "");
  EXPECT_EQ(refusal("bw=0"), "bw is at least 1e-06");
  EXPECT_EQ(refusal("bw=1e-320,bytes=1"), "bw is at least 1e-06");
  EXPECT_EQ(refusal("bw=1e-6,bytes=1e12"), "");
  EXPECT_EQ(refusal("experts=1.5"), "experts is a part, from 0 to 1");
  EXPECT_EQ(refusal("fuse=1.5"), "") << "a call may be slower than its parts";
  EXPECT_EQ(refusal("r0-r1:fuse=1"), "fuse is said of tasks, not of a link");
  EXPECT_EQ(refusal("slowdown=0.5"), "slowdown is at least 1");
  EXPECT_EQ(refusal("crowded=0.5"), "crowded is at least 1");
  EXPECT_EQ(refusal("r0:ahead=1"), "ahead is said of the whole step, without a scope");
  EXPECT_EQ(refusal("r0:overlap=0.8"), "overlap is said of the whole step, without a scope");
  EXPECT_EQ(refusal("r0:comm=1"), "comm is said of a link, as in r0-r1:comm=1, or of all");
  EXPECT_EQ(refusal("r0-r1:f=1"), "f is said of tasks, not of a link");
  EXPECT_NE(refusal("x0:f=1").find("`x0` in `x0:` is no part of a scope"), std::string::npos);
  EXPECT_NE(refusal("r0.r1:f=1").find("`r1` in"), std::string::npos);
  EXPECT_NE(refusal("c0:f=1").find("`c0` in"), std::string::npos);
  EXPECT_NE(refusal("r0-1:comm=1").find("`1` in"), std::string::npos);
}

}  // namespace
}  // namespace capo
