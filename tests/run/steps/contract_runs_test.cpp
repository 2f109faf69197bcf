// The contract of gradients, run: every kind of module in every mode, whole and delayed,
// comes out right under the sound contract; under TransformerEngine's it goes wrong exactly where
// the table of core/frameworks/te/contract.h says so, and how it says.
//
// A comparison must also prove that defects show: a run that cannot fail says nothing.
// For the same modules the verifier names the rule, under plan te.

#include "core/frameworks/te/contract.h"
#include "tests/run/cells.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace capo::run {
namespace {

using gradients::Contract;
using gradients::GradientMode;
using gradients::kColumns;
using gradients::kGradientModes;

// Lists, and orders with named microbatches whose weight gradients come in reverse.
std::vector<std::string> orders_of(GradientMode mode) {
  if (delays(mode)) {
    return {"[1, 1, -1, -1.5, -1, -1.5]",
            "capo 1\nmicrobatches 2\nrank 0: F1.0 F1.1 B1.0 B1.1 W1.1 W1.0\n",
            "capo 1\nmicrobatches 3\nrank 0: F1.0 F1.1 B1.1 F1.2 B1.0 W1.0 B1.2 W1.2 W1.1\n"};
  }
  return {"[1, 1, -1, -1]", "capo 1\nmicrobatches 2\nrank 0: F1.0 F1.1 B1.1 B1.0\n"};
}

std::string words_for(ModuleKind kind, GradientMode mode) {
  return fmt::format("{}, {}", capo::name_of(kind), gradients::name_of(mode));
}

TEST(ContractRuns, EveryCellIsRightUnderTheSoundContract) {
  std::size_t runs = 0;
  for (const ModuleKind kind : kColumns) {
    for (const GradientMode mode : kGradientModes) {
      for (const std::string& order : orders_of(mode)) {
        SCOPED_TRACE(words_for(kind, mode) + "\n" + order);
        const VerifiedPlan plan = verified(typed(order), every_layer(configured(kind, mode)));
        for (const Granularity graphs : kGranularities) {
          const RunReport report = report_of(plan, {.graphs = graphs});
          expect_right(report);
          EXPECT_EQ(report.replays, 3U);
          // Numbers rounded to bf16 may well be exact; sums in fp32 are not.
          EXPECT_TRUE(!fuses(mode) || report.worst_relative_error > 0);
          ++runs;
        }
      }
    }
  }
  EXPECT_EQ(runs, 180U);
}

// Gradients of biases come with the weight's and are never fused.
TEST(ContractRuns, BiasesAreRightInEveryCell) {
  for (const ModuleKind kind : kColumns) {
    for (const GradientMode mode : kGradientModes) {
      SCOPED_TRACE(words_for(kind, mode));
      Module module = configured(kind, mode);
      module.flags.bias = true;
      module.flags.scale_bias = kind == ModuleKind::GroupedLinearOp;
      for (const std::string& order : orders_of(mode)) {
        expect_right(run_verified(typed(order), every_layer(module), {}));
      }
    }
  }
}

TEST(ContractRuns, TheBasicOperationIsRightInEveryConfigurationThatItHas) {
  for (const GradientMode mode : kGradientModes) {
    SCOPED_TRACE(gradients::name_of(mode));
    for (const std::string& order : orders_of(mode)) {
      expect_right(
          run_verified(typed(order), every_layer(configured(ModuleKind::BasicLinearOp, mode)), {}));
    }
  }
}

// --- TransformerEngine's -------------------------------------------------------------------------

bool has_mark(ModuleKind kind, GradientMode mode, char mark) {
  const auto defects = gradients::defects_of(*contract(kind, mode, Contract::Te));
  return std::any_of(defects.begin(), defects.end(),
                     [&](const gradients::Defect& defect) { return defect.mark == mark; });
}

TEST(ContractRuns, UnderTransformerEnginesAWeightIsWrongWhereTheTableSaysSo) {
  std::set<std::string> wrong;
  for (const ModuleKind kind : kColumns) {
    for (const GradientMode mode : kGradientModes) {
      SCOPED_TRACE(words_for(kind, mode));
      const VerifiedPlan plan =
          verified(typed(plain_order(mode)), every_layer(configured(kind, mode)));
      for (const Granularity graphs : kGranularities) {
        const RunReport report = report_of(plan, {.graphs = graphs, .whose = Contract::Te});
        const bool lost = has_mark(kind, mode, 'a');
        const bool garbage = has_mark(kind, mode, 'b');
        EXPECT_EQ(report.bit_equal, !lost && !garbage);
        EXPECT_TRUE(report.within_bounds);  // of what is eager, and sound
        for (const TensorReport& tensor : report.parameters) {
          SCOPED_TRACE(tensor.name);
          ASSERT_EQ(tensor.difference.has_value(), is_weight(tensor) && (lost || garbage));
          if (!tensor.difference) continue;
          wrong.insert(words_for(kind, mode));
          EXPECT_EQ(tensor.replay, 1U);
          // Python's assignment is done by no replay: nothing is there, or what was never written.
          if (garbage) {
            EXPECT_TRUE(std::isnan(tensor.difference->is));
            EXPECT_EQ(tensor.difference->differing, tensor.elements);
          } else {
            EXPECT_EQ(tensor.difference->is, 0);
            EXPECT_EQ(tensor.difference->relative_error, 1);
          }
        }
        for (const TensorReport& tensor : report.input_gradients) {
          EXPECT_FALSE(tensor.difference.has_value()) << tensor.name;
        }
      }
    }
  }
  EXPECT_EQ(wrong, (std::set<std::string>{"linear, delay", "layernorm-linear, delay",
                                          "layernorm-mlp, delay", "grouped-linear, delay",
                                          "grouped-linear-op, delay", "grouped-mlp, delay"}));
}

TEST(ContractRuns, TheVerifierNamesTheRuleOfTheSameModules) {
  for (const ModuleKind kind : kColumns) {
    for (const GradientMode mode : kGradientModes) {
      SCOPED_TRACE(words_for(kind, mode));
      const Rules rules =
          rules_broken(typed(plain_order(mode)), every_layer(configured(kind, mode), PlanKind::Te));
      Rules expected;
      if (has_mark(kind, mode, 'b')) {
        expected = {"G03"};
      } else if (has_mark(kind, mode, 'a')) {
        expected = {"G01"};
      }
      EXPECT_EQ(rules, expected);
    }
  }
}

TEST(ContractRuns, AReductionBetweenBAndWIsTheRulesBusiness) {
  for (const ModuleKind kind : kColumns) {
    SCOPED_TRACE(capo::name_of(kind));
    EXPECT_TRUE(has_mark(kind, GradientMode::DelayFuseAttr, 'c'));
    expect_flag_ahead_of_its_gradient(configured(kind, GradientMode::DelayFuseAttr));
  }
}

// TransformerEngine issue 2871.
TEST(ContractRuns, AViewOfMainGradDoublesExactly) {
  Module module = configured(ModuleKind::BasicLinearOp, GradientMode::Fuse);
  module.flags.overwrite_main_grad = true;
  const VerifiedPlan plan = verified(typed("[1, -1]"), every_layer(module));
  for (const Granularity graphs : kGranularities) {
    expect_right(report_of(plan, {.graphs = graphs}));
    const RunReport report = report_of(plan, {.graphs = graphs, .whose = Contract::Te});
    EXPECT_FALSE(report.bit_equal);
    const TensorReport& weight = parameter(report, "weight");
    ASSERT_TRUE(weight.difference.has_value());
    EXPECT_EQ(weight.difference->differing, weight.elements);
    EXPECT_EQ(weight.difference->is, 2 * weight.difference->should);
    // |2x - x| / |x| over all elements is 1 only if every one is doubled.
    EXPECT_EQ(weight.difference->relative_error, 1);
  }
  EXPECT_EQ(rules_broken(typed("[1, -1]"), every_layer(module, PlanKind::Te)), Rules{"G05"});
}

// --- overwriting ---------------------------------------------------------------------------------

// Whether products of weight gradients overwrite or add, as graphs have it baked in, in the order
// of capture.
std::vector<Write> baked_in(const Inspection& at) {
  std::vector<Write> writes;
  for (const Stepper::Captured& captured : at.graphs) {
    for (const GraphNode& node : at.engine.inspect(captured.graph)) {
      const auto* product = std::get_if<GroupedProduct>(&node.call);
      if (product != nullptr && product->kind == GroupedProduct::Kind::WeightGradient) {
        writes.push_back(product->write);
      }
    }
  }
  return writes;
}

// There are as many for each of the two weights of an MLP.
std::vector<Write> writes_of(ModuleKind kind, Write first, Write second) {
  return is_mlp(kind) ? std::vector{first, first, second, second} : std::vector{first, second};
}

TEST(ContractRuns, WhoeverWritesFirstOverwritesAndTheRestAdds) {
  for (const ModuleKind kind : kColumns) {
    for (const auto flag : {&ModuleFlags::overwrite_main_grad, &ModuleFlags::is_first_microbatch}) {
      for (const GradientMode mode : {GradientMode::Fuse, GradientMode::FuseAttr,
                                      GradientMode::DelayFuse, GradientMode::DelayFuseAttr}) {
        SCOPED_TRACE(words_for(kind, mode));
        Module module = configured(kind, mode);
        module.flags.*flag = true;
        for (const std::string& order : orders_of(mode)) {
          for (const Granularity graphs : kGranularities) {
            expect_right(run_verified(typed(order), every_layer(module), {.graphs = graphs}));
          }
        }
      }
    }
  }
}

// Every product overwrites, so that the last microbatch is what remains.
TEST(ContractRuns, UnderTransformerEnginesOverwritingLosesTheFirstMicrobatch) {
  for (const ModuleKind kind : kColumns) {
    SCOPED_TRACE(capo::name_of(kind));
    Module module = configured(kind, GradientMode::DelayFuse);
    module.flags.overwrite_main_grad = true;
    const std::string order = plain_order(GradientMode::DelayFuse);
    std::vector<Write> writes;
    const RunReport report = run_verified(
        typed(order), every_layer(module),
        {.whose = Contract::Te, .inspect = [&](const Inspection& at) { writes = baked_in(at); }});
    EXPECT_EQ(writes, writes_of(kind, Write::Overwrite, Write::Overwrite));
    for (const TensorReport& tensor : report.parameters) {
      EXPECT_EQ(tensor.difference.has_value(), is_weight(tensor)) << tensor.name;
    }
    EXPECT_EQ(rules_broken(typed(order), every_layer(module, PlanKind::Te)), Rules{"G12"});
    // With one microbatch there is nothing to lose.
    EXPECT_TRUE(run_verified(typed("[1, -1, -1.5]"), every_layer(module), {.whose = Contract::Te})
                    .bit_equal);
  }
}

// The plan was verified with the flag as it was then: what becomes of somebody's module between
// eager execution, capture and replay changes neither, since deposits are made once for a run.
TEST(ContractRuns, AFlagThatChangesDuringTheRunChangesNothing) {
  for (const ModuleKind kind : kColumns) {
    for (const Write first : {Write::Add, Write::Overwrite}) {
      SCOPED_TRACE(capo::name_of(kind));
      CheckOptions options = every_layer(configured(kind, GradientMode::DelayFuse));
      bool& flag = options.modules.list.front().flags.overwrite_main_grad;
      flag = first == Write::Overwrite;
      const VerifiedPlan plan = verified(typed("[1, 1, -1, -1.5, -1, -1.5]"), options);
      std::vector<std::vector<Write>> seen;
      std::size_t changes = 0;
      RunOptions run_options;
      run_options.inspect = [&](const Inspection& at) { seen.push_back(baked_in(at)); };
      run_options.hooks.before = [&](const OpPart&, ParameterRegistry&) {
        flag = !flag;
        ++changes;
      };
      expect_right(report_of(plan, run_options));
      EXPECT_GE(changes, 36U);  // six parts of work and more, in six walks
      const std::vector<Write> writes = writes_of(kind, first, Write::Add);
      EXPECT_EQ(seen, (std::vector{writes, writes}));
    }
  }
}

TEST(ContractRuns, AFirstMicrobatchThatNoReplayHearsOfAddsToZeros) {
  for (const ModuleKind kind : gradients::kColumns) {
    Module module = configured(kind, gradients::GradientMode::DelayFuse);
    module.flags.is_first_microbatch = true;
    const RunReport report =
        run_verified(typed("[1, -1, -1.5]"), every_layer(module, PlanKind::Te), {});
    EXPECT_TRUE(report.bit_equal) << capo::name_of(kind);
  }
}

TEST(ContractRuns, OnTheGroupedPathABiasGradientComesWithTheBackward) {
  Module module = small(ModuleKind::GroupedLinear);
  module.flags.bias = true;
  EXPECT_TRUE(
      run_verified(typed("[1, -1, -1.5]"), every_layer(module, PlanKind::Te), {}).bit_equal);
}

}  // namespace
}  // namespace capo::run
