// The driver of the rules: each finding carries the id and the family of its rule, and the result
// says whether the step finishes and what was not looked at.

#include "core/rules/check.h"

#include "core/input/load.h"
#include "core/rules/context.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace capo {
namespace {

CheckResult checked(std::string text, const CheckOptions& options = {}) {
  const auto input = load(Source{.name = "x", .text = std::move(text)}, {});
  EXPECT_TRUE(input);
  return check(*input, options);
}

// Of a table whose stages are declared, with microbatches from 0.
CheckResult declared(std::string text, std::vector<std::int32_t> stage_to_rank,
                     const CheckOptions& options = {}) {
  const auto input = load(Source{.name = "x", .text = std::move(text)},
                          {.torch = {.stage_to_rank = std::move(stage_to_rank)}});
  EXPECT_TRUE(input);
  return check(*input, options);
}

TEST(Check, BindsIdAndFamilyOfTheRuleToEachFinding) {
  CheckOptions planned;
  planned.plan.kind = PlanKind::Te;
  std::vector<std::string> rules;
  for (const CheckResult& result :
       {checked("[1, 0, -1]"), checked("[1, -1, -1, 1]"), checked("capo 1\nrank 0: B1.0 F1.0\n"),
        declared("0F0,0B0,1F0,1B0\n1F0,1B0\n", {0, 1}),
        checked("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n"),
        checked("capo 1\nrank 0: F1 F2 B1 B2 reduce1\n"),
        checked("[1, -1, 1, -1.5, -1, -1.5]", planned)}) {
    ASSERT_FALSE(result.diagnostics.kept().empty());
    for (const Diagnostic& finding : result.diagnostics.kept()) {
      const Rule* rule = find_rule(finding.rule);
      ASSERT_NE(rule, nullptr) << finding.message;
      EXPECT_EQ(rule->id, finding.rule);
      EXPECT_EQ(rule->family, finding.family) << finding.rule;
    }
    rules.emplace_back(result.diagnostics.kept().front().rule);
  }
  EXPECT_EQ(rules, (std::vector<std::string>{"S04", "S23", "D01", "P01", "T03", "G14", "B01"}));
}

// An action on a rank that does not hold its stage makes nothing, and the rest may still finish.
TEST(Check, OfMisplacedActionsSaysWhetherTheRestFinishes) {
  EXPECT_EQ(declared("0F0,0B0,0F1,0B1,1F0\n1F0,1B0,1F1,1B1\n", {0, 1}).finishes, true);
  EXPECT_EQ(declared("0F0,0B0,0F1,0B1,1F0\n1F1,1B1,1F0,1B0\n", {0, 1}).finishes, std::nullopt)
      << "they wait for each other";
}

TEST(Check, OfMoreFindingsThanAreKeptSaysNothingMore) {
  const std::string strays = "0F0,0B0,1F0\n1F0,1B0,0F0\n";
  EXPECT_EQ(declared(strays, {0, 1}).finishes, true);
  const Environment defaults{.assume_defaults = true};  // else more are kept, to be compared
  EXPECT_EQ(declared(strays, {0, 1}, {.findings_per_rule = 1, .environment = defaults}).finishes,
            std::nullopt);
}

// Nobody asked for a plan, so that nothing is missing where it is too large to make.
TEST(Check, OfAPlanThatNobodyAskedForIsNotRefused) {
  CheckOptions small;
  small.plan.max_unasked_buffers = 1;
  const CheckResult result = checked("[1, -1, 1, -1.5, -1, -1.5]", small);
  EXPECT_EQ(result.verdict, Verdict::Accepted);
  EXPECT_TRUE(result.diagnostics.kept().empty());
  EXPECT_FALSE(result.plan);
  EXPECT_TRUE(result.left_unasked);
  EXPECT_FALSE(checked("[1, -1, 1, -1.5, -1, -1.5]").left_unasked);
  EXPECT_FALSE(checked("[1, -1]", small).left_unasked) << "it could hurt nobody";
  EXPECT_FALSE(checked("[1, -1, 1, -1.5, -1, -1.5, -1.5]", small).left_unasked)
      << "errors come first";
  small.plan.max_buffers = 1;
  small.plan.kind = PlanKind::Te;
  EXPECT_EQ(checked("[1, -1, 1, -1.5, -1, -1.5]", small).verdict, Verdict::NoVerdict);
}

TEST(Check, OrdersAreCleanWhereNoRuleOfThemFinds) {
  const auto clean = [](std::string text) {
    const auto input = load(Source{.name = "x", .text = std::move(text)}, {});
    const CheckOptions options;
    return orders_are_clean(Context(*input, options));
  };
  EXPECT_TRUE(clean("[1, -1]"));
  EXPECT_FALSE(clean("[1, 0, -1]")) << "an entry";
  EXPECT_FALSE(clean("[1, 1, -1]")) << "a count";
  EXPECT_FALSE(clean("0F0,0B0\n1F0,1B0,0F0\n")) << "a placement";
}

}  // namespace
}  // namespace capo
