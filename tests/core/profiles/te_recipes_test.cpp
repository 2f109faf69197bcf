// Twelve lists of modules that quantize: what TransformerEngine says of each, as its sources have
// it, and what the verdict under its plan says is wrong. Nothing of it was run.
//
// Lines are those of release 2.20.2: graph.py, quantization.py, module/base.py, linear.py,
// layernorm_mlp.py and grouped_linear.py, ops/basic/grouped_linear.py.

#include "core/profiles/consult.h"
#include "tests/support/check_text.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace capo {
namespace {

using testing_support::check_in;

constexpr ModuleFlags kDelayed{.delay_wgrad = true, .fuse_wgrad_accumulation = true};
constexpr ModuleFlags kBiased{.delay_wgrad = true, .fuse_wgrad_accumulation = true, .bias = true};
constexpr ModuleFlags kOverridden{
    .delay_wgrad = true, .fuse_wgrad_accumulation = true, .high_precision_backward = true};

struct Row {
  const char* source;
  std::string list;
  Module module;
  std::optional<Architecture> architecture;
  std::optional<std::int32_t> cublaslt;
  std::string kind;   ///< of TransformerEngine's error; empty: it accepts
  std::string where;  ///< step and entry
  std::string rule;   ///< of the first finding; empty: accepted
};

const std::vector<Row>& rows() {
  constexpr auto kHopper = Architecture::Hopper;
  constexpr auto kBlackwell = Architecture::Blackwell;
  const std::string late = "[1, -1, 1, -1.5, -1, -1.5]";
  static const std::vector<Row> all{
      {"quantization.py:162-168, check_recipe_support() raises",
       "[1, -1]",
       {.kind = ModuleKind::Linear, .recipe = Recipe::Mxfp8},
       kHopper,
       {},
       "TE.RuntimeError",
       "in warm-up, at index 0",
       "C14"},
      {"quantization.py:770, which asserts what check_recipe_support() does not ask",
       "[1, -1]",
       {.kind = ModuleKind::Linear, .recipe = Recipe::Nvfp4},
       kHopper,
       {},
       "py.AssertionError",
       "in warm-up, at index 0",
       "C14"},
      {"layernorm_mlp.py:2765 converts what line 1393 leaves out of the product",
       "[1, -1, -1.5]",
       {.kind = ModuleKind::LayerNormMlp, .recipe = Recipe::Current, .flags = kBiased},
       {},
       {},
       "py.AttributeError",
       "in warm-up, at index 1",
       "C12"},
      {"base.py, backward_dw() asks whether there is a bias gradient",
       "[1, -1, -1.5]",
       {.kind = ModuleKind::Linear, .recipe = Recipe::Current, .flags = kBiased},
       {},
       {},
       "",
       "",
       ""},
      {"grouped_linear.py:157, no row for delayed scaling: tolist() of a tensor on the device",
       "[1, -1]",
       {.kind = ModuleKind::GroupedLinear, .recipe = Recipe::Delayed, .splits = Splits::Device},
       {},
       {},
       "torch.RuntimeError",
       "in capture, at index 0",
       "C15"},
      {"grouped_linear.py:141-143, blocks on Hopper from cuBLASLt 13.6 on",
       "[1, -1]",
       {.kind = ModuleKind::GroupedLinear, .recipe = Recipe::Block, .splits = Splits::Device},
       kHopper,
       1305,
       "torch.RuntimeError",
       "in capture, at index 0",
       "C15"},
      {"ops/basic/grouped_linear.py:102-129 does not look at a backward override",
       "[1, -1]",
       {.kind = ModuleKind::GroupedLinearOp,
        .recipe = Recipe::Mxfp8,
        .flags = {.high_precision_backward = true},
        .splits = Splits::Device},
       kBlackwell,
       1303,
       "",
       "",
       ""},
      {"linear.py, update_ws is a constant of the capture",
       "[1, 1, -1, -1]",
       {.kind = ModuleKind::Linear, .recipe = Recipe::Block, .weight_cache = WeightCache::Python},
       {},
       {},
       "",
       "",
       "C13"},
      {"linear.py:616, W reads the column-wise copy and not the static input",
       late,
       {.kind = ModuleKind::Linear, .recipe = Recipe::Mxfp8, .flags = kDelayed},
       {},
       {},
       "",
       "",
       ""},
      {"csrc/extensions/misc.cpp:41-98 hands the caller's sizes on, which W reads again",
       late,
       {.kind = ModuleKind::GroupedLinear,
        .recipe = Recipe::Mxfp8,
        .flags = kDelayed,
        .splits = Splits::Input},
       kBlackwell,
       1304,
       "",
       "",
       "B01"},
      {"linear.py:1090, under an override W reads the static input itself",
       late,
       {.kind = ModuleKind::Linear, .recipe = Recipe::Mxfp8, .flags = kOverridden},
       {},
       {},
       "",
       "",
       "B01"},
      {"graph.py:280 (d0067d0da) comes before any module is called",
       "[1.0, -1]",
       {.kind = ModuleKind::Linear, .recipe = Recipe::Mxfp8},
       kHopper,
       {},
       "py.TypeError",
       "in the dimension check",
       "S03"},
  };
  return all;
}

TEST(TeRecipes, AreAnsweredAsTheSourcesOf2202Say) {
  ASSERT_EQ(rows().size(), 12u);
  for (Row row : rows()) {
    SCOPED_TRACE(std::string(row.source) + ": " + row.list);
    row.module.name = "m";
    testing_support::Setting setting{
        .modules = {.list = {row.module}, .layers = {{{0}}}},
        .plan = {.kind = PlanKind::Te},
    };
    setting.environment.architecture = row.architecture;
    setting.environment.cublaslt = row.cublaslt;
    const auto checked = check_in(setting, row.list);
    const Opinion said = consult_te(
        checked.input, {.modules = &setting.modules, .environment = setting.environment});
    EXPECT_EQ(said.accepts, row.kind.empty());
    EXPECT_EQ(said.error_kind.value_or(""), row.kind);
    EXPECT_NE(said.reason.find(row.where), std::string::npos) << said.reason;
    EXPECT_EQ(checked.accepted(), row.rule.empty());
    if (!row.rule.empty()) {
      EXPECT_EQ(checked.first().rule, row.rule);
    }
  }
}

// Up to 2.19 the base of linear and its kin converts a bias gradient without asking.
TEST(TeRecipes, OfABiasAreAnotherInRelease219) {
  const ModuleTable modules{.list = {{.name = "m",
                                      .kind = ModuleKind::Linear,
                                      .recipe = Recipe::Current,
                                      .flags = kBiased}},
                            .layers = {{{0}}}};
  const auto checked =
      check_in({.modules = modules, .plan = {.kind = PlanKind::Te}}, "[1, -1, -1.5]");
  ConsultOptions options{.modules = &modules};
  for (const te::Version& version : te::kVersions) {
    options.te.version = &version;
    EXPECT_EQ(consult_te(checked.input, options).accepts, version.release != "2.19");
  }
}

// The order and its modules go wrong in one pass: whichever entry is first is raised.
TEST(TeRecipes, AreRaisedWhereTheyComeBeforeTheOrders) {
  const ModuleTable modules{
      .list = {{.name = "plain", .kind = ModuleKind::Linear},
               {.name = "refused", .kind = ModuleKind::Linear, .recipe = Recipe::Mxfp8}},
      .layers = {{{0}, {1}}}};
  Environment hopper;
  hopper.architecture = Architecture::Hopper;
  const ConsultOptions options{.modules = &modules, .environment = hopper};
  const auto where = [&](const std::string& list) {
    return consult_te(check_in({}, list).input, options).reason;
  };
  EXPECT_NE(where("[1, 2, -2, -1]").find("at index 1"), std::string::npos);
  EXPECT_NE(where("[1, -1, -1, 2]").find("py.KeyError in warm-up, at index 2"), std::string::npos)
      << where("[1, -1, -1, 2]");
}

}  // namespace
}  // namespace capo
