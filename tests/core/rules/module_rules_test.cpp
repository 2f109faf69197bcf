// Every rule about declared modules by themselves, as rows: what is at fault, and what is not.
//
// The words of the findings are compared by tests/corpus/rules/G01 to G11 and C01 to C07; what else
// there is to say of one rule stands in module_gradients_test.cpp and capture_test.cpp.

#include "core/rules/rule.h"
#include "tests/support/check_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace capo {
namespace {

using testing_support::check_module;
using testing_support::Checked;

struct AtFault {
  std::string rule;
  Module module;
  std::string list;
  WitnessKind kind;
  std::string tasks;
};

const std::vector<AtFault>& modules_at_fault() {
  static const std::vector<AtFault> rows{
      {"G01",
       {.name = "attn", .kind = ModuleKind::Linear, .flags = {.delay_wgrad = true}},
       "[1, 1, -1, -1.5, -1, -1.5]",
       WitnessKind::Replay,
       "W(c1,m0) W(c1,m1)"},
      {"G02",
       {.name = "attn",
        .kind = ModuleKind::Linear,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .bias = true}},
       "[1, 1, -1, -1.5, -1, -1.5]",
       WitnessKind::Replay,
       "W(c1,m0) W(c1,m1)"},
      {"G02",
       {.name = "attn",
        .kind = ModuleKind::Linear,
        .recipe = Recipe::Block,
        .flags = {.delay_wgrad = true,
                  .fuse_wgrad_accumulation = true,
                  .bias = true,
                  .high_precision_backward = true}},
       "[1, 1, -1, -1.5, -1, -1.5]",
       WitnessKind::Replay,
       "W(c1,m0) W(c1,m1)"},
      {"G03",
       {.name = "attn", .kind = ModuleKind::GroupedLinear, .flags = {.delay_wgrad = true}},
       "[1, 1, -1, -1.5, -1, -1.5]",
       WitnessKind::Replay,
       "B(c1,m0) W(c1,m0)"},
      {"G04",
       {.name = "attn",
        .kind = ModuleKind::Linear,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .frozen_weight = true}},
       "[1, -1, -1.5]",
       WitnessKind::Entries,
       "W(c1,m0)"},
      {"G05",
       {.name = "attn",
        .kind = ModuleKind::BasicLinearOp,
        .flags = {.fuse_wgrad_accumulation = true, .overwrite_main_grad = true}},
       "[1, -1]",
       WitnessKind::Entries,
       "B(c1,m0)"},
      {"G07",
       {.name = "attn",
        .kind = ModuleKind::GroupedMlp,
        .flags = {.fuse_wgrad_accumulation = true, .single_weight = true},
        .main_grad = MainGrad{.shape = {4, 64, 32}, .strides = {2048, 1, 64}}},
       "[1, -1]",
       WitnessKind::Entries,
       "B(c1,m0)"},
      {"G08",
       {.name = "attn",
        .kind = ModuleKind::GroupedLinearOp,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .wgrad_hooks = true}},
       "[1, 1, -1, -1.5, -1, -1.5]",
       WitnessKind::Replay,
       "W(c1,m0) W(c1,m1)"},
      {"G09",
       {.name = "attn",
        .kind = ModuleKind::TransformerLayer,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .wgrad_hooks = true},
        .grad_buckets = 2},
       "[1, 1, -1, -1.5, -1, -1.5]",
       WitnessKind::Replay,
       "W(c1,m0) W(c1,m1)"},
      {"G10",
       {.name = "attn", .kind = ModuleKind::Linear, .flags = {.clone_param_grads = false}},
       "[1, 1, -1, -1]",
       WitnessKind::Replay,
       "B(c1,m0) B(c1,m1)"},
      {"G11",
       {.name = "attn",
        .kind = ModuleKind::Linear,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .sharded_weight = true}},
       "[1, -1, -1.5]",
       WitnessKind::Entries,
       "W(c1,m0)"},
      {"C01",
       {.name = "attn", .kind = ModuleKind::GroupedLinear, .splits = Splits::Host},
       "[1, -1]",
       WitnessKind::Entries,
       "F(c1,m0)"},
      {"C02",
       {.name = "attn", .kind = ModuleKind::Linear, .flags = {.synchronises = true}},
       "[1, -1]",
       WitnessKind::Entries,
       "F(c1,m0)"},
      {"C03",
       {.name = "attn", .kind = ModuleKind::Linear, .flags = {.unjoined_stream = true}},
       "[1, -1]",
       WitnessKind::Entries,
       "F(c1,m0)"},
      {"C04",
       {.name = "attn",
        .kind = ModuleKind::Linear,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true},
        .calls = 3},
       "[1, 1, -1, -1.5, -1, -1.5]",
       WitnessKind::Replay,
       "W(c1,m0) W(c1,m1)"},
      {"C05",
       {.name = "attn",
        .kind = ModuleKind::GroupedLinear,
        .shape = {.groups = 65},
        .splits = Splits::Device},
       "[1, -1]",
       WitnessKind::Entries,
       "F(c1,m0)"},
      {"C06",
       {.name = "attn",
        .kind = ModuleKind::Linear,
        .flags = {.fuse_wgrad_accumulation = true, .input_requires_grad = false}},
       "[1, -1]",
       WitnessKind::Entries,
       "B(c1,m0)"},
      {"C07",
       {.name = "attn", .kind = ModuleKind::Linear, .flags = {.offloaded = true}},
       "[1, -1]",
       WitnessKind::Replay,
       "B(c1,m0) F(c1,m0)"},
      {"C09",
       {.name = "attn", .kind = ModuleKind::Linear, .flags = {.hooks = true}},
       "[1, -1]",
       WitnessKind::Entries,
       "F(c1,m0)"},
      {"C15",
       {.name = "experts",
        .kind = ModuleKind::GroupedLinear,
        .recipe = Recipe::Delayed,
        .splits = Splits::Device},
       "[1, -1]",
       WitnessKind::Entries,
       "F(c1,m0)"},
      {"C12",
       {.name = "mlp",
        .kind = ModuleKind::LayerNormMlp,
        .recipe = Recipe::Current,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .bias = true}},
       "[1, -1, -1.5]",
       WitnessKind::Entries,
       "W(c1,m0)"},
      {"C13",
       {.name = "attn",
        .kind = ModuleKind::Linear,
        .recipe = Recipe::Block,
        .weight_cache = WeightCache::Python},
       "[1, 1, -1, -1]",
       WitnessKind::Replay,
       "F(c1,m0) F(c1,m1)"},
      {"C10",
       {.name = "attn", .kind = ModuleKind::Linear, .flags = {.hooks_each_call = true}},
       "[1, 1, -1, -1]",
       WitnessKind::Replay,
       "F(c1,m0) F(c1,m1)"},
  };
  return rows;
}

struct Innocent {
  std::string rule;
  Module module;
  std::string list;
  std::string why;
};

const std::vector<Innocent>& innocent_modules() {
  static const std::vector<Innocent> rows{
      {"G01",
       {.kind = ModuleKind::Linear,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true}},
       "[1, 1, -1, -1.5, -1, -1.5]",
       "a fused one adds into main_grad"},
      {"G01", {.kind = ModuleKind::Linear}, "[1, -1]", "what is not delayed is returned"},
      {"G01",
       {.kind = ModuleKind::GroupedLinearOp, .flags = {.delay_wgrad = true, .frozen_weight = true}},
       "[1, 1, -1, -1.5, -1, -1.5]",
       "nothing is queued (G04)"},
      {"G02",
       {.kind = ModuleKind::Linear,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true}},
       "[1, 1, -1, -1.5, -1, -1.5]",
       "there is no bias"},
      {"G02",
       {.kind = ModuleKind::Linear,
        .recipe = Recipe::Block,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .bias = true}},
       "[1, 1, -1, -1.5, -1, -1.5]",
       "B makes it of a module that quantizes"},
      {"G02",
       {.kind = ModuleKind::GroupedLinearOp,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .bias = true}},
       "[1, 1, -1, -1.5, -1, -1.5]",
       "B makes it in an operation"},
      {"G02",
       {.kind = ModuleKind::GroupedLinear,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .bias = true},
        .splits = Splits::Device},
       "[1, 1, -1, -1.5, -1, -1.5]",
       "B makes it on the grouped path"},
      {"G02",
       {.flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .bias = true}},
       "[1, 1, -1, -1.5, -1, -1.5]",
       "nothing is known of the kind"},
      {"G03",
       {.kind = ModuleKind::GroupedLinear,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true}},
       "[1, 1, -1, -1.5, -1, -1.5]",
       "a fused one returns none"},
      {"G03", {.kind = ModuleKind::GroupedLinear}, "[1, -1]", "what is not delayed is there"},
      {"G03",
       {.kind = ModuleKind::GroupedLinear, .flags = {.delay_wgrad = true, .frozen_weight = true}},
       "[1, 1, -1, -1.5, -1, -1.5]",
       "no gradient is asked for"},
      {"G04",
       {.kind = ModuleKind::Linear,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true}},
       "[1, -1, -1.5]",
       "a trained weight is queued"},
      {"G04",
       {.kind = ModuleKind::Linear, .flags = {.frozen_weight = true}},
       "[1, -1]",
       "there is no weight gradient to run"},
      {"G04",
       {.kind = ModuleKind::GroupedLinear,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .frozen_weight = true}},
       "[1, -1, -1.5]",
       "it looks before it takes"},
      {"G04",
       {.kind = ModuleKind::GroupedMlp,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .frozen_weight = true}},
       "[1, -1, -1.5]",
       "so do operations"},
      {"G05",
       {.kind = ModuleKind::BasicLinearOp, .flags = {.fuse_wgrad_accumulation = true}},
       "[1, -1]",
       "it adds, and returns none"},
      {"G05",
       {.kind = ModuleKind::BasicLinearOp, .flags = {.overwrite_main_grad = true}},
       "[1, -1]",
       "main_grad is not written"},
      {"G05",
       {.kind = ModuleKind::GroupedLinearOp,
        .flags = {.fuse_wgrad_accumulation = true, .overwrite_main_grad = true}},
       "[1, -1]",
       "another operation asks twice"},
      {"G05",
       {.kind = ModuleKind::Linear,
        .flags = {.fuse_wgrad_accumulation = true, .overwrite_main_grad = true}},
       "[1, -1]",
       "nor do modules"},
      {"G07",
       {.kind = ModuleKind::GroupedMlp,
        .flags = {.fuse_wgrad_accumulation = true, .single_weight = true},
        .main_grad = MainGrad{.shape = {4, 64, 32}, .strides = {2048, 32, 1}}},
       "[1, -1]",
       "it is contiguous"},
      {"G07",
       {.kind = ModuleKind::GroupedMlp,
        .flags = {.fuse_wgrad_accumulation = true},
        .main_grad = MainGrad{.shape = {4, 64, 32}, .strides = {2048, 1, 64}}},
       "[1, -1]",
       "each weight has its own"},
      {"G07",
       {.kind = ModuleKind::GroupedMlp,
        .flags = {.single_weight = true},
        .main_grad = MainGrad{.shape = {4, 64, 32}, .strides = {2048, 1, 64}}},
       "[1, -1]",
       "nobody writes it"},
      {"G07",
       {.kind = ModuleKind::GroupedMlp,
        .flags = {.fuse_wgrad_accumulation = true, .single_weight = true}},
       "[1, -1]",
       "nothing is declared of it"},
      {"G07",
       {.kind = ModuleKind::GroupedLinear,
        .flags = {.fuse_wgrad_accumulation = true, .single_weight = true},
        .main_grad = MainGrad{.shape = {256, 32}, .strides = {64, 1}}},
       "[1, -1]",
       "the sizes of the weight are not known"},
      {"G08",
       {.kind = ModuleKind::GroupedLinear,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .wgrad_hooks = true}},
       "[1, 1, -1, -1.5, -1, -1.5]",
       "those of modules run"},
      {"G08",
       {.kind = ModuleKind::GroupedLinearOp,
        .flags = {.fuse_wgrad_accumulation = true, .wgrad_hooks = true}},
       "[1, -1]",
       "autograd's hooks run with B"},
      {"G08",
       {.kind = ModuleKind::GroupedLinearOp,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true}},
       "[1, 1, -1, -1.5, -1, -1.5]",
       "nothing hangs on them"},
      {"G09",
       {.kind = ModuleKind::TransformerLayer,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .wgrad_hooks = true}},
       "[1, 1, -1, -1.5, -1, -1.5]",
       "one bucket has one order"},
      {"G09",
       {.kind = ModuleKind::LayerNormMlp,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .wgrad_hooks = true},
        .grad_buckets = 2},
       "[1, 1, -1, -1.5, -1, -1.5]",
       "a set of one module has one order"},
      {"G09",
       {.kind = ModuleKind::TransformerLayer,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true},
        .grad_buckets = 2},
       "[1, 1, -1, -1.5, -1, -1.5]",
       "nothing starts within it"},
      {"G09",
       {.kind = ModuleKind::TransformerLayer,
        .flags = {.fuse_wgrad_accumulation = true, .wgrad_hooks = true},
        .grad_buckets = 2},
       "[1, -1]",
       "B is no set"},
      {"G09",
       {.flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .wgrad_hooks = true},
        .grad_buckets = 2},
       "[1, 1, -1, -1.5, -1, -1.5]",
       "nobody says that it is made of modules"},
      {"G10", {.kind = ModuleKind::Linear}, "[1, 1, -1, -1]", "copies are returned"},
      {"G10",
       {.kind = ModuleKind::Linear,
        .flags = {.fuse_wgrad_accumulation = true, .clone_param_grads = false}},
       "[1, 1, -1, -1]",
       "nothing is returned"},
      {"G10",
       {.kind = ModuleKind::Linear, .flags = {.clone_param_grads = false}},
       "[1, -1]",
       "there is one microbatch"},
      {"G10",
       {.kind = ModuleKind::Linear,
        .flags = {.grad_added_to_main_grad = true, .clone_param_grads = false}},
       "[1, 1, -1, -1]",
       "DDP takes it at once"},
      {"G11",
       {.kind = ModuleKind::Linear,
        .flags = {.fuse_wgrad_accumulation = true, .sharded_weight = true}},
       "[1, -1]",
       "B scatters it"},
      {"G11",
       {.kind = ModuleKind::Linear,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true}},
       "[1, -1, -1.5]",
       "there is nothing to scatter"},
      {"C09", {.kind = ModuleKind::Linear}, "[1, -1]", "it has no hook"},
      {"C15",
       {.kind = ModuleKind::GroupedLinear, .recipe = Recipe::Current, .splits = Splits::Device},
       "[1, -1]",
       "some device has a grouped product for it"},
      {"C15",
       {.kind = ModuleKind::GroupedLinear, .recipe = Recipe::Delayed},
       "[1, -1]",
       "nobody says that the sizes are on the device"},
      {"C15",
       {.kind = ModuleKind::Linear, .recipe = Recipe::Delayed, .splits = Splits::Device},
       "[1, -1]",
       "it has no groups"},
      {"C14",
       {.kind = ModuleKind::Linear, .recipe = Recipe::Mxfp8},
       "[1, -1]",
       "some device runs it"},
      {"C12",
       {.kind = ModuleKind::Linear,
        .recipe = Recipe::Current,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .bias = true}},
       "[1, -1, -1.5]",
       "it asks whether there is a gradient"},
      {"C12",
       {.kind = ModuleKind::TransformerLayer,
        .mlp = MlpKind::Experts,
        .recipe = Recipe::Current,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .bias = true}},
       "[1, -1, -1.5]",
       "there is no dense MLP in it"},
      {"C12",
       {.kind = ModuleKind::LayerNormMlp,
        .recipe = Recipe::Current,
        .flags = {.delay_wgrad = true,
                  .fuse_wgrad_accumulation = true,
                  .bias = true,
                  .high_precision_backward = true}},
       "[1, -1, -1.5]",
       "the product makes the gradient"},
      {"C12",
       {.kind = ModuleKind::LayerNormMlp, .recipe = Recipe::Current, .flags = {.bias = true}},
       "[1, -1]",
       "B hands it on"},
      {"C13",
       {.kind = ModuleKind::Linear, .weight_cache = WeightCache::Python},
       "[1, -1]",
       "nothing is quantized"},
      {"C13",
       {.kind = ModuleKind::Linear,
        .recipe = Recipe::Block,
        .weight_cache = WeightCache::Python,
        .flags = {.frozen_weight = true}},
       "[1, -1]",
       "nothing changes the weight"},
      {"C13",
       {.kind = ModuleKind::Linear, .recipe = Recipe::Block, .weight_cache = WeightCache::Device},
       "[1, 1, -1, -1]",
       "a number on the device is read at each replay"},
      {"C10",
       {.kind = ModuleKind::Linear,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .wgrad_hooks = true}},
       "[1, 1, -1, -1]",
       "hooks of weight gradients are asked by others"},
      {"C01",
       {.kind = ModuleKind::GroupedLinear, .splits = Splits::Device},
       "[1, -1]",
       "they are on the device"},
      {"C01",
       {.kind = ModuleKind::GroupedLinear, .splits = Splits::Input},
       "[1, -1]",
       "they are an input"},
      {"C01", {.kind = ModuleKind::GroupedLinear}, "[1, -1]", "nothing is said"},
      {"C02", {.kind = ModuleKind::Linear}, "[1, -1]", "it does not wait"},
      {"C03", {.kind = ModuleKind::Linear}, "[1, -1]", "it comes back"},
      {"C04",
       {.kind = ModuleKind::Linear,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true}},
       "[1, 1, -1, -1.5, -1, -1.5]",
       "it is called once"},
      {"C04",
       {.kind = ModuleKind::Linear, .flags = {.fuse_wgrad_accumulation = true}, .calls = 3},
       "[1, -1]",
       "B runs them all"},
      {"C04",
       {.kind = ModuleKind::GroupedLinear,
        .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .frozen_weight = true},
        .calls = 3},
       "[1, 1, -1, -1.5, -1, -1.5]",
       "nothing is queued"},
      {"C05",
       {.kind = ModuleKind::GroupedLinear, .shape = {.groups = 64}, .splits = Splits::Device},
       "[1, -1]",
       "64 are not too many"},
      {"C05",
       {.kind = ModuleKind::GroupedLinear, .shape = {.groups = 65}},
       "[1, -1]",
       "the split path has a product for each"},
      {"C05",
       {.kind = ModuleKind::GroupedLinear,
        .shape = {.groups = 65},
        .flags = {.single_weight = true},
        .splits = Splits::Input},
       "[1, -1]",
       "one weight has one address"},
      {"C05",
       {.kind = ModuleKind::Linear, .shape = {.groups = 65}, .splits = Splits::Input},
       "[1, -1]",
       "it is not a grouped product"},
      {"C06",
       {.kind = ModuleKind::Linear, .flags = {.fuse_wgrad_accumulation = true}},
       "[1, -1]",
       "the input gets one"},
      {"C06",
       {.kind = ModuleKind::Linear, .flags = {.input_requires_grad = false}},
       "[1, -1]",
       "a real weight gradient is returned"},
      {"C06",
       {.kind = ModuleKind::Linear,
        .flags = {.fuse_wgrad_accumulation = true,
                  .grad_added_to_main_grad = true,
                  .input_requires_grad = false}},
       "[1, -1]",
       "a dummy is returned"},
      {"C06",
       {.kind = ModuleKind::Linear,
        .flags = {.fuse_wgrad_accumulation = true, .bias = true, .input_requires_grad = false}},
       "[1, -1]",
       "the bias gets one"},
      {"C06",
       {.kind = ModuleKind::LayerNormLinear,
        .flags = {.fuse_wgrad_accumulation = true, .input_requires_grad = false}},
       "[1, -1]",
       "the norm gets one"},
      {"C06",
       {.flags = {.fuse_wgrad_accumulation = true, .input_requires_grad = false}},
       "[1, -1]",
       "nothing is known of the kind"},
      {"C06",
       {.kind = ModuleKind::GroupedLinear,
        .flags = {.delay_wgrad = true, .input_requires_grad = false}},
       "[1, -1, -1.5]",
       "the buffer of W is returned"},
      {"C07", {.kind = ModuleKind::Linear}, "[1, -1]", "they stay"},
  };
  return rows;
}

std::vector<Diagnostic> found(const AtFault& row, std::optional<PlanKind> plan) {
  return check_module(row.module, row.list, plan).of(find_rule(row.rule)->family);
}

std::string actions_of(const Diagnostic& finding) {
  std::string actions;
  for (const WitnessEntry& task : finding.witness.tasks) {
    actions += (actions.empty() ? "" : " ") + task.action;
  }
  return actions;
}

TEST(ModuleRules, AreErrorsUnderThePlanOfTe) {
  for (const AtFault& row : modules_at_fault()) {
    SCOPED_TRACE(row.rule);
    const std::vector<Diagnostic> findings = found(row, PlanKind::Te);
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].rule, row.rule);
    EXPECT_EQ(findings[0].severity, Severity::Error);
    EXPECT_EQ(findings[0].witness.kind, row.kind);
    EXPECT_EQ(actions_of(findings[0]), row.tasks);
    EXPECT_FALSE(check_module(row.module, row.list).accepted());
  }
}

TEST(ModuleRules, WithoutAPlanAreWarningsThatNameTheirCondition) {
  for (const AtFault& row : modules_at_fault()) {
    SCOPED_TRACE(row.rule);
    const std::vector<Diagnostic> findings = found(row, std::nullopt);
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].rule, row.rule);
    EXPECT_EQ(findings[0].severity, Severity::Warning);
    EXPECT_EQ(findings[0].message,
              "if these layers are captured as TransformerEngine captures them, " +
                  found(row, PlanKind::Te).at(0).message);
    EXPECT_TRUE(check_module(row.module, row.list, std::nullopt).accepted());
  }
}

TEST(ModuleRules, UnderCaposPlanAreSilentButForSplitsOnTheHost) {
  for (const AtFault& row : modules_at_fault()) {
    SCOPED_TRACE(row.rule);
    const std::vector<Diagnostic> findings = found(row, PlanKind::Safe);
    ASSERT_EQ(findings.size(), row.rule == "C01" ? 1u : 0u);
    for (const Diagnostic& finding : findings) EXPECT_EQ(finding.severity, Severity::Error);
    EXPECT_EQ(check_module(row.module, row.list, PlanKind::Safe).accepted(), findings.empty());
  }
}

TEST(ModuleRules, LeaveOtherModulesAlone) {
  for (const Innocent& row : innocent_modules()) {
    EXPECT_TRUE(check_module(row.module, row.list).of(find_rule(row.rule)->family).empty())
        << row.rule << ": " << row.why;
  }
}

TEST(ModuleRules, AllHaveARow) {
  for (const Rule& rule : catalogue()) {
    // shared-weight is PyTorch's fault, and recipe-refused a declared device's: both have tests of
    // their own.
    if (rule.pass != Pass::Modules || rule.name == "shared-weight") continue;
    if (rule.name == "recipe-refused") continue;
    const auto has_row = [&rule](const auto& row) { return row.rule == rule.id; };
    const auto& faults = modules_at_fault();
    const auto& innocents = innocent_modules();
    EXPECT_TRUE(std::any_of(faults.begin(), faults.end(), has_row)) << rule.id;
    EXPECT_TRUE(std::any_of(innocents.begin(), innocents.end(), has_row)) << rule.id;
  }
}

}  // namespace
}  // namespace capo
