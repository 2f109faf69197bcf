// The contract of gradients where products read codes: the fused grouped MLP of TransformerEngine
// pull request 2871 in every mode, with a weight for each group or one for all, and every other
// kind that runs a recipe; right under the sound contract, and wrong under TransformerEngine's
// where its table says so. contract_runs_test.cpp has the same of products that read numbers.

#include "core/frameworks/te/contract.h"
#include "tests/run/cells.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace capo::run {
namespace {

using gradients::Contract;
using gradients::GradientMode;
using gradients::kGradientModes;

constexpr std::array kRunRecipes{Recipe::Block, Recipe::Mxfp8};

enum class Weights { OneEach, OneForAll };

constexpr std::array kWeights{Weights::OneEach, Weights::OneForAll};

Module under_recipe(ModuleKind kind, GradientMode mode, Recipe recipe) {
  Module module = configured(kind, mode);
  module.recipe = recipe;
  return module;
}

Module fused_mlp(GradientMode mode, Recipe recipe, Weights weights) {
  Module module = under_recipe(ModuleKind::GroupedMlp, mode, recipe);
  module.flags.single_weight = weights == Weights::OneForAll;
  return module;
}

// A list, and named microbatches whose weight gradients come in reverse.
std::vector<std::string> pair_of_orders(GradientMode mode) {
  if (delays(mode)) {
    return {"[1, 1, -1, -1.5, -1, -1.5]",
            "capo 1\nmicrobatches 3\nrank 0: F1.0 F1.1 B1.1 F1.2 B1.0 W1.0 B1.2 W1.2 W1.1\n"};
  }
  return {"[1, 1, -1, -1]", "capo 1\nmicrobatches 2\nrank 0: F1.0 F1.1 B1.1 B1.0\n"};
}

std::string words_of_cell(const Module& module, GradientMode mode) {
  return fmt::format("{}, {}, {}{}", name_of(*module.kind), name_of(recipe_of(module)),
                     gradients::name_of(mode),
                     module.flags.single_weight ? ", one weight for all groups" : "");
}

TEST(CodedContract, EveryCellOfTheFusedMlpIsRightUnderTheSoundContract) {
  std::size_t runs = 0;
  for (const Recipe recipe : kRunRecipes) {
    for (const Weights weights : kWeights) {
      for (const GradientMode mode : kGradientModes) {
        const Module module = fused_mlp(mode, recipe, weights);
        for (const std::string& order : pair_of_orders(mode)) {
          SCOPED_TRACE(words_of_cell(module, mode) + "\n" + order);
          const VerifiedPlan plan = verified(typed(order), every_layer(module));
          for (const Granularity graphs : kGranularities) {
            expect_right(report_of(plan, {.graphs = graphs}));
            ++runs;
          }
        }
      }
    }
  }
  EXPECT_EQ(runs, 96U);
}

// With zero_out_wgrad the dummy is of zeros; under the other two flags the first write of a step
// overwrites main_grad.
TEST(CodedContract, FlagsOfTheFusedMlpChangeNothingUnderTheSoundContract) {
  for (const auto flag : {&ModuleFlags::zero_out_wgrad, &ModuleFlags::overwrite_main_grad,
                          &ModuleFlags::is_first_microbatch}) {
    for (const Weights weights : kWeights) {
      for (const GradientMode mode : kGradientModes) {
        if (!fuses(mode)) continue;
        Module module = fused_mlp(mode, Recipe::Mxfp8, weights);
        module.flags.*flag = true;
        SCOPED_TRACE(words_of_cell(module, mode));
        for (const std::string& order : pair_of_orders(mode)) {
          expect_right(run_verified(typed(order), every_layer(module), {}));
        }
      }
    }
  }
}

TEST(CodedContract, EveryOtherKindIsRightInItsCells) {
  for (const Recipe recipe : kRunRecipes) {
    for (const ModuleKind kind :
         {ModuleKind::Linear, ModuleKind::LayerNormLinear, ModuleKind::LayerNormMlp,
          ModuleKind::GroupedLinear, ModuleKind::GroupedLinearOp, ModuleKind::BasicLinearOp,
          ModuleKind::Attention, ModuleKind::MoeLayer, ModuleKind::TransformerLayer}) {
      for (const GradientMode mode : kGradientModes) {
        const Module module = under_recipe(kind, mode, recipe);
        SCOPED_TRACE(words_of_cell(module, mode));
        expect_right(run_verified(typed(pair_of_orders(mode).back()), every_layer(module), {}));
      }
    }
  }
}

// --- TransformerEngine's -------------------------------------------------------------------------

// The defect of the helper's cell: 'a' if a delayed gradient replaces .grad, which no replay does.
bool is_lost(GradientMode mode) {
  const auto defects =
      gradients::defects_of(*gradients::contract(ModuleKind::GroupedMlp, mode, Contract::Te));
  return std::any_of(defects.begin(), defects.end(),
                     [](const gradients::Defect& defect) { return defect.mark == 'a'; });
}

TEST(CodedContract, UnderTransformerEnginesTheFusedMlpLosesWhatItsHelperAssigns) {
  for (const Weights weights : kWeights) {
    for (const GradientMode mode : kGradientModes) {
      const Module module = fused_mlp(mode, Recipe::Mxfp8, weights);
      SCOPED_TRACE(words_of_cell(module, mode));
      const std::string order = plain_order(mode);
      const VerifiedPlan plan = verified(typed(order), every_layer(module));
      for (const Granularity graphs : kGranularities) {
        const RunReport report = report_of(plan, {.graphs = graphs, .whose = Contract::Te});
        EXPECT_EQ(report.bit_equal, !is_lost(mode));
        EXPECT_TRUE(report.within_bounds) << "of what is eager, and sound";
        for (const TensorReport& tensor : report.parameters) {
          SCOPED_TRACE(tensor.name);
          ASSERT_EQ(tensor.difference.has_value(), is_lost(mode) && is_weight(tensor));
          if (tensor.difference) {
            EXPECT_EQ(tensor.difference->is, 0);
          }
        }
      }
      const Rules rules = rules_broken(typed(order), every_layer(module, PlanKind::Te));
      EXPECT_EQ(rules, is_lost(mode) ? Rules{"G01"} : Rules{});
    }
  }
  EXPECT_TRUE(is_lost(GradientMode::Delay));
}

TEST(CodedContract, TheFlagOfTheFusedMlpIsAheadOfItsGradient) {
  for (const Weights weights : kWeights) {
    expect_flag_ahead_of_its_gradient(
        fused_mlp(GradientMode::DelayFuseAttr, Recipe::Mxfp8, weights));
  }
}

TEST(CodedContract, UnderTransformerEnginesOverwritingLosesTheFirstMicrobatch) {
  for (const Weights weights : kWeights) {
    Module module = fused_mlp(GradientMode::DelayFuse, Recipe::Mxfp8, weights);
    module.flags.overwrite_main_grad = true;
    SCOPED_TRACE(words_of_cell(module, GradientMode::DelayFuse));
    const std::string order = plain_order(GradientMode::DelayFuse);
    const RunReport report =
        run_verified(typed(order), every_layer(module), {.whose = Contract::Te});
    for (const TensorReport& tensor : report.parameters) {
      EXPECT_EQ(tensor.difference.has_value(), is_weight(tensor)) << tensor.name;
    }
    EXPECT_EQ(rules_broken(typed(order), every_layer(module, PlanKind::Te)), Rules{"G12"});
  }
}

// Pull request 2871 mended it in the fused MLP, and it is left in the basic operation: main_grad
// itself goes to autograd, and whoever adds .grad to it doubles it.
TEST(CodedContract, AViewOfMainGradDoublesExactly) {
  for (const Recipe recipe : kRunRecipes) {
    Module module = under_recipe(ModuleKind::BasicLinearOp, GradientMode::Fuse, recipe);
    module.flags.overwrite_main_grad = true;
    SCOPED_TRACE(name_of(recipe));
    const VerifiedPlan plan = verified(typed("[1, -1]"), every_layer(module));
    for (const Granularity graphs : kGranularities) {
      expect_right(report_of(plan, {.graphs = graphs}));
      const RunReport report = report_of(plan, {.graphs = graphs, .whose = Contract::Te});
      EXPECT_FALSE(report.bit_equal);
      const TensorReport& weight = parameter(report, "weight");
      ASSERT_TRUE(weight.difference.has_value());
      EXPECT_EQ(weight.difference->is, 2 * weight.difference->should);
      EXPECT_EQ(weight.difference->relative_error, 1);
    }
    EXPECT_EQ(rules_broken(typed("[1, -1]"), every_layer(module, PlanKind::Te)), Rules{"G05"});
  }
}

}  // namespace
}  // namespace capo::run
