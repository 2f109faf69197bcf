// How many findings a fact about a module is, and where they stand, for module_gradients.cpp
// and capture.cpp.

#include "core/rules/modules.h"

#include <gtest/gtest.h>

namespace capo::rules {
namespace {

// Two ranks with two chunks of one microbatch each: F1 F2 B2 W2 B1 W1.
Input input_of(Layers layers = {}) {
  Input input{.form = Form::OrderFile};
  for (int rank = 0; rank < 2; ++rank) {
    RankOrder order{.chunks = 2, .layers = layers};
    for (const auto& [kind, chunk] : {std::pair{Kind::Forward, 1},
                                      {Kind::Forward, 2},
                                      {Kind::Backward, 2},
                                      {Kind::BackwardWeight, 2},
                                      {Kind::Backward, 1},
                                      {Kind::BackwardWeight, 1}}) {
      order.order.push_back({.chunk = chunk, .microbatch = 0, .kind = kind});
    }
    input.schedule.ranks.push_back(order);
  }
  return input;
}

Module named(std::string name) {
  return {.name = std::move(name)};
}

// "attn@0:c1:5": the module, then rank, chunk and entry.
std::vector<std::string> uses(const Input& input, ModuleTable modules, ShowsAt shows_at) {
  const CheckOptions options{.modules = std::move(modules)};
  const Context context(input, options);
  std::vector<std::string> found;
  for (const ModuleUse& use : modules_at_fault(
           context, shows_at, [](const Module& module) { return module.name != "ok"; })) {
    found.push_back(use.module->name + "@" + std::to_string(use.order->rank) + ":c" +
                    std::to_string(use.chunk) + ":" + std::to_string(use.at));
  }
  return found;
}

using Lines = std::vector<std::string>;

TEST(CapturedByTe, IsAnErrorAWarningOrNothing) {
  const Input input = input_of();
  const auto severity = [&](std::optional<PlanKind> plan) {
    const CheckOptions options{.plan = {.kind = plan}};
    return captured_by_te(Context(input, options));
  };
  EXPECT_EQ(severity(PlanKind::Te), Severity::Error);
  EXPECT_EQ(severity(std::nullopt), Severity::Warning);
  EXPECT_EQ(severity(PlanKind::Safe), std::nullopt);
}

TEST(CapturedByTe, TakesTheFirstOrderThatRunsALayerOfEachModule) {
  const ModuleTable modules{.list = {named("ok"), named("attn"), named("mlp"), named("unused")},
                            .layers = {{{0}, {1}}, {{2}, {1}}}};
  EXPECT_EQ(uses(input_of(), modules, ShowsAt::Forward), (Lines{"attn@0:c2:1", "mlp@1:c1:0"}));
  EXPECT_EQ(uses(input_of(), modules, ShowsAt::Backward), (Lines{"attn@0:c2:2", "mlp@1:c1:4"}));
  EXPECT_EQ(uses(input_of(), modules, ShowsAt::WeightGradient),
            (Lines{"attn@0:c2:3", "mlp@1:c1:5"}));
}

TEST(CapturedByTe, FallsBackToWhatTheChunkHas) {
  Input input = input_of();
  std::erase_if(input.schedule.ranks[0].order,
                [](const Entry& entry) { return entry.kind == Kind::BackwardWeight; });
  const ModuleTable modules{.list = {named("attn")}, .layers = {{{0}}}};
  EXPECT_EQ(uses(input, modules, ShowsAt::WeightGradient), Lines{"attn@0:c1:3"});
  input.schedule.ranks[0].order.resize(2);
  EXPECT_EQ(uses(input, modules, ShowsAt::WeightGradient), Lines{"attn@0:c1:0"});
}

TEST(CapturedByTe, LooksAtAsManyLayersAsTheChunkHas) {
  const ModuleTable modules{.list = {named("ok"), named("attn")}, .layers = {{{0, 0, 1}}}};
  EXPECT_EQ(uses(input_of(), modules, ShowsAt::Forward).size(), 1u);
  EXPECT_EQ(uses(input_of({.form = Layers::Form::Null}), modules, ShowsAt::Forward).size(), 1u);
  EXPECT_EQ(uses(input_of({Layers::Form::Count, {2}}), modules, ShowsAt::Forward), Lines{});
  EXPECT_EQ(
      uses(input_of({Layers::Form::Count, {2'000'000'000}}), modules, ShowsAt::Forward).size(), 1u)
      << "layers that nobody told apart cost nothing";
  EXPECT_EQ(uses(input_of({Layers::Form::List, {2, 3}}), modules, ShowsAt::Forward),
            Lines{"attn@0:c2:1"});
  EXPECT_EQ(uses(input_of({Layers::Form::Count, {-1}}), modules, ShowsAt::Forward), Lines{});
}

TEST(CapturedByTe, KnowsNothingOfWhatIsUndeclared) {
  EXPECT_EQ(uses(input_of(), {}, ShowsAt::Forward), Lines{});
  const ModuleTable rank_one{.list = {named("attn")}, .layers = {{}, {{0}}}};
  EXPECT_EQ(uses(input_of(), rank_one, ShowsAt::Forward), Lines{"attn@1:c1:0"});
}

TEST(ModulesAtFault, PassByWhatIsNoComputation) {
  Input input = input_of();
  std::vector<Entry>& order = input.schedule.ranks[0].order;
  order.insert(order.begin(), {.chunk = 1, .kind = Kind::Unshard});
  EXPECT_EQ(uses(input, {.list = {named("attn"), named("ok")}, .layers = {{{0}, {1}}, {{1}}}},
                 ShowsAt::Forward),
            (std::vector<std::string>{"attn@0:c1:1"}));
}

TEST(ModulesAtFault, PassByAChunkThatTheRankDoesNotHave) {
  Input input = input_of();
  input.schedule.ranks[0].order.push_back({.chunk = 3, .microbatch = 0, .kind = Kind::Forward});
  EXPECT_EQ(uses(input, {.list = {named("attn")}, .layers = {{{0}}}}, ShowsAt::Forward),
            (std::vector<std::string>{"attn@0:c1:0"}));
}

TEST(ModulesAtFault, PassByAChunkThatNeverRuns) {
  Input input = input_of();
  std::erase_if(input.schedule.ranks[0].order, [](const Entry& entry) { return entry.chunk == 2; });
  EXPECT_EQ(
      uses(input, {.list = {named("ok"), named("attn")}, .layers = {{{0}, {1}}}}, ShowsAt::Forward),
      Lines{"attn@1:c2:1"});
}

TEST(ModulesAtFault, PassByALayerOfWhichNothingIsDeclared) {
  EXPECT_EQ(uses(input_of(), {.list = {named("ok"), named("attn")}, .layers = {{{0}, {1}}, {{0}}}},
                 ShowsAt::Forward),
            (std::vector<std::string>{"attn@0:c2:1"}));
  Input three = input_of();
  three.schedule.ranks.resize(1);
  three.schedule.ranks[0].chunks = 3;
  three.schedule.ranks[0].order.push_back({.chunk = 3, .microbatch = 0, .kind = Kind::Forward});
  EXPECT_EQ(
      uses(three, {.list = {named("ok"), named("attn")}, .layers = {{{0}, {1}}}}, ShowsAt::Forward),
      (std::vector<std::string>{"attn@0:c2:1"}));
}

}  // namespace
}  // namespace capo::rules
