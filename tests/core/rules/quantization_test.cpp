// The rules of core/rules/quantization.cpp that look at orders: where each finding stands, and
// where there is none. Those about modules alone are rows of module_rules_test.cpp.
//
// The words of the findings are compared by tests/corpus/rules/Y07 and T15.

#include "tests/support/check_text.h"

#include <gtest/gtest.h>
#include "core/model/environment.h"

#include <optional>
#include <string>
#include <vector>

namespace capo {
namespace {

using testing_support::check_in;
using testing_support::Checked;
using testing_support::Found;
using testing_support::Setting;

ModuleTable of_all_layers(Module module) {
  return {.list = {std::move(module)}, .layers = {{{0}}}};
}

Module cached(Recipe recipe = Recipe::Mxfp8) {
  return {.name = "attn",
          .kind = ModuleKind::Linear,
          .recipe = recipe,
          .weight_cache = WeightCache::Device};
}

Checked check_cached(const Module& module, const std::string& order,
                     std::optional<PlanKind> plan = PlanKind::Te) {
  return check_in({.modules = of_all_layers(module), .plan = {.kind = plan, .aliases = Aliases{}}},
                  "capo 1\n" + order);
}

TEST(StaleWeight, IsReadByTheFirstForwardBeforeThatOfTheFirstMicrobatch) {
  const Checked checked = check_cached(cached(), "rank 0: F1.2 F1.1 F1.0 B1.0 B1.1 B1.2\n");
  ASSERT_EQ(checked.findings(), Found{"Y07@0"});
  EXPECT_EQ(checked.first().witness.kind, WitnessKind::Replay);
  EXPECT_EQ(checked.first().witness.tasks.size(), 2u);
  EXPECT_EQ(check_cached(cached(), "rank 0: F1.0 F1.2 F1.1 B1.0 B1.1 B1.2\n").findings(), Found{});
}

TEST(StaleWeight, IsOfTheReplayAndNotOfTheCapture) {
  constexpr const char* kMended =
      "rank 0: F1.1 F1.0 B1.0 B1.1\nrank 0 replay: F1.0 F1.1 B1.0 B1.1\n";
  for (const std::string& rule : check_cached(cached(), kMended).findings())
    EXPECT_FALSE(rule.starts_with("Y07")) << rule;
}

TEST(StaleWeight, IsAWarningWithoutAPlanAndNothingUnderCapos) {
  constexpr const char* kStale = "rank 0: F1.1 F1.0 B1.0 B1.1\n";
  const Checked open = check_cached(cached(), kStale, std::nullopt);
  ASSERT_FALSE(open.findings().empty());
  EXPECT_EQ(open.first().rule, "Y07");
  EXPECT_EQ(open.first().severity, Severity::Warning);
  EXPECT_TRUE(open.accepted());
  EXPECT_EQ(check_cached(cached(), kStale, PlanKind::Safe).findings(), Found{});
}

TEST(StaleWeight, IsNoneOfAWeightThatIsNotKeptQuantizedOrNeverChanges) {
  constexpr const char* kStale = "rank 0: F1.1 F1.0 B1.0 B1.1\n";
  EXPECT_EQ(check_cached(cached(Recipe::None), kStale).findings(), Found{});
  Module each = cached();
  each.weight_cache.reset();
  EXPECT_EQ(check_cached(each, kStale).findings(), Found{});
  Module frozen = cached();
  frozen.flags.frozen_weight = true;
  EXPECT_EQ(check_cached(frozen, kStale).findings(), Found{});
}

TEST(RecipeRefused, IsWhatTheDeclaredDeviceDoesNotRun) {
  const auto findings = [](Recipe recipe, std::optional<Architecture> architecture,
                           std::optional<PlanKind> plan = PlanKind::Te) {
    Setting setting{
        .modules = of_all_layers({.name = "attn", .kind = ModuleKind::Linear, .recipe = recipe}),
        .plan = {.kind = plan, .aliases = Aliases{}}};
    setting.environment.architecture = architecture;
    return check_in(setting, "[1, -1]").findings();
  };
  EXPECT_EQ(findings(Recipe::Mxfp8, Architecture::Hopper), Found{"C14@0"});
  EXPECT_EQ(findings(Recipe::Nvfp4, Architecture::Hopper), Found{"C14@0"});
  EXPECT_EQ(findings(Recipe::Block, Architecture::Hopper), Found{});
  EXPECT_EQ(findings(Recipe::Mxfp8, Architecture::Blackwell), Found{});
  EXPECT_EQ(findings(Recipe::Mxfp8, std::nullopt), Found{});
  EXPECT_EQ(findings(Recipe::Mxfp8, Architecture::Hopper, PlanKind::Safe), Found{});
}

TEST(SizesOnTheHost, DependOnTheDeviceAndItsLibrary) {
  const auto findings = [](Recipe recipe, std::optional<Architecture> architecture,
                           std::optional<std::int32_t> cublaslt) {
    Setting setting{.modules = of_all_layers({.name = "experts",
                                              .kind = ModuleKind::GroupedLinear,
                                              .recipe = recipe,
                                              .splits = Splits::Device}),
                    .plan = {.kind = PlanKind::Te, .aliases = Aliases{}}};
    setting.environment.architecture = architecture;
    setting.environment.cublaslt = cublaslt;
    return check_in(setting, "[1, -1]").findings();
  };
  EXPECT_EQ(findings(Recipe::Block, Architecture::Blackwell, std::nullopt), Found{"C15@0"});
  EXPECT_EQ(findings(Recipe::Block, Architecture::Hopper, std::nullopt), Found{});
  EXPECT_EQ(findings(Recipe::Block, Architecture::Hopper, 1305), Found{"C15@0"});
  EXPECT_EQ(findings(Recipe::Block, Architecture::Hopper, 1306), Found{});
  EXPECT_EQ(findings(Recipe::None, Architecture::Hopper, 1303), Found{"C15@0"});
  EXPECT_EQ(findings(Recipe::Mxfp8, Architecture::Hopper, 1306), Found{"C14@0"})
      << "a recipe that does not run has no products";
}

Setting reducing(std::vector<std::int32_t> group, Recipe recipe = Recipe::Delayed) {
  Setting setting{
      .modules = of_all_layers({.name = "mlp", .kind = ModuleKind::Linear, .recipe = recipe}),
      .plan = {.kind = PlanKind::Safe}};
  setting.environment.amax_group = std::move(group);
  return setting;
}

Found amax_findings(const Setting& setting, const std::string& orders) {
  Found found;
  for (const std::string& finding : check_in(setting, "capo 1\nranks 3\n" + orders).findings()) {
    if (finding.starts_with("T15")) found.push_back(finding);
  }
  return found;
}

constexpr const char* kOneUnlike =
    "rank 0: F1.0 F1.1 B1.0 B1.1\nrank 1: F1.0 F1.1 B1.1 B1.0\nrank 2: F1.0 B1.0 F1.1 B1.1\n";

TEST(AmaxOrder, IsComparedOfTheMembersAlone) {
  EXPECT_EQ(amax_findings(reducing({0, 1}), kOneUnlike), Found{}) << "microbatches may differ";
  EXPECT_EQ(amax_findings(reducing({0, 1, 2}), kOneUnlike), Found{"T15@1"});
  EXPECT_EQ(amax_findings(reducing({1, 2}), kOneUnlike), Found{"T15@1"});
  EXPECT_EQ(amax_findings(reducing({}), kOneUnlike), Found{});
}

TEST(AmaxOrder, IsNoConcernOfRecipesWithoutState) {
  for (const Recipe recipe : {Recipe::None, Recipe::Current, Recipe::Block, Recipe::Mxfp8})
    EXPECT_EQ(amax_findings(reducing({0, 2}, recipe), kOneUnlike), Found{});
}

TEST(AmaxOrder, EndsTogetherOrIsReportedAtTheLastReduction) {
  Setting setting = reducing({0, 1});
  setting.modules.list.push_back({.name = "other", .kind = ModuleKind::Linear});
  setting.modules.layers = {{{0}}, {{1}}, {{1}}};
  EXPECT_EQ(amax_findings(setting, kOneUnlike), Found{"T15@0"}) << "rank 1 never reduces";
}

}  // namespace
}  // namespace capo
