// The reference of a step against a chain of layers done by hand, and what it says of a step that
// is wired wrongly.

#include "run/reference/step_reference.h"
#include "tests/run/running.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace capo::run {
namespace {

// Two linear stages on one rank, two microbatches.
class TwoStagesOf : public ::testing::Test {
 protected:
  explicit TwoStagesOf(DataType type)
      : plan(verified(
            typed("capo 1\nplacement chain\nrank 0 chunks 2\nrank 0: F1 F1 F2 B2 B1 F2 B2 B1\n"),
            every_layer(linear(type)))) {
    for (std::uint32_t p = 0; p < 2; ++p)
      parameters.push_back(values_of(draw_parameter(layers, p, 1)));
    stored.inputs.assign(2, std::vector<std::vector<float>>(2));
    stored.grad_outputs = stored.inputs;
    for (std::size_t m = 0; m < 2; ++m) {
      stored.inputs[0][m] = values_of(given.inputs[m]);
      stored.inputs[1][m] = product(stored.inputs[0][m], parameters[0]);
      stored.grad_outputs[1][m] = values_of(given.grad_outputs[2 + m]);
      stored.grad_outputs[0][m] = back(stored.grad_outputs[1][m], parameters[1]);
    }
  }

  static constexpr std::size_t kRows = 8;
  static constexpr std::size_t kColumns = 16;

  static std::vector<float> product(const std::vector<float>& x, const std::vector<float>& w) {
    std::vector<float> y(kRows * kColumns);
    for (std::size_t row = 0; row < kRows; ++row) {
      for (std::size_t out = 0; out < kColumns; ++out) {
        double sum = 0;
        for (std::size_t in = 0; in < kColumns; ++in) {
          sum += static_cast<double>(x[row * kColumns + in]) *
                 static_cast<double>(w[out * kColumns + in]);
        }
        y[row * kColumns + out] = static_cast<float>(sum);
      }
    }
    return y;
  }
  static std::vector<float> back(const std::vector<float>& dy, const std::vector<float>& w) {
    std::vector<float> transposed(w.size());
    for (std::size_t out = 0; out < kColumns; ++out) {
      for (std::size_t in = 0; in < kColumns; ++in) {
        transposed[in * kColumns + out] = w[out * kColumns + in];
      }
    }
    return product(dy, transposed);
  }
  [[nodiscard]] StepReference reference() const {
    return reference_of(plan.step(), layers, parameters, given, stored);
  }

  // The tensor with the largest error of those that were handed on.
  [[nodiscard]] HandedOn worst() const {
    const std::vector<HandedOn> all = reference().handed_on;
    return *std::max_element(all.begin(), all.end(), [](const HandedOn& a, const HandedOn& b) {
      return a.error < b.error;
    });
  }

  static Module linear(DataType type) {
    Module module = small(ModuleKind::Linear);
    module.dtype = type;
    return module;
  }

  VerifiedPlan plan;
  StepLayers layers = StepLayers::of(plan.step()).value();
  Program program = program_of(plan.step().view().table(), plan.step().replayed()).value();
  StepValues given = draw_values(plan.step(), layers, program, SizeKind::Balanced, 1, 1);
  std::vector<std::vector<float>> parameters;
  StoredOperands stored;
};

// In fp32 hardly anything is rounded.
class TwoStages : public TwoStagesOf {
 protected:
  TwoStages() : TwoStagesOf(DataType::Fp32) {}
};

// The first layer makes one number of its first microbatch, 1 + 2^-8, and zeros.
class OneNumberOnAnEdge : public TwoStagesOf {
 protected:
  OneNumberOnAnEdge() : TwoStagesOf(DataType::Bf16) {
    stored.inputs[0][0].assign(kRows * kColumns, 0);
    stored.inputs[0][0][0] = 1;
    stored.inputs[0][0][1] = 0x1p-8F;
    parameters[0].assign(kColumns * kColumns, 0);
    parameters[0][0] = 1;
    parameters[0][1] = 1;
    stored.inputs[1][0].assign(kRows * kColumns, 0);
    stored.inputs[1][0][0] = 1;
  }

  [[nodiscard]] HandedOn second_input(const StepReference& of) const {
    return *std::find_if(of.handed_on.begin(), of.handed_on.end(), [](const HandedOn& handed) {
      return handed.layer == 1 && handed.microbatch == 0 && !handed.gradient;
    });
  }
};

TEST_F(TwoStages, WhatAStepHandsOnIsAsItShouldBe) {
  EXPECT_LT(worst().error, 1e-7);
}

TEST_F(TwoStages, AWeightsGradientIsTheSumOfItsMicrobatches) {
  const StepReference of = reference();
  for (std::size_t out = 0; out < kColumns; ++out) {
    for (std::size_t in = 0; in < kColumns; ++in) {
      double sum = 0;
      double magnitude = 0;
      for (std::size_t m = 0; m < 2; ++m) {
        double one = 0;
        for (std::size_t row = 0; row < kRows; ++row) {
          one += static_cast<double>(stored.grad_outputs[0][m][row * kColumns + out]) *
                 static_cast<double>(stored.inputs[0][m][row * kColumns + in]);
        }
        sum += one;
        magnitude += std::abs(one);
      }
      EXPECT_NEAR(of.gradients[0][out * kColumns + in], sum, 1e-6 * magnitude);
      EXPECT_NEAR(of.ascending[0][out * kColumns + in], sum, 1e-12 * magnitude);
      EXPECT_NEAR(of.magnitudes[0][out * kColumns + in], magnitude, 1e-12 * magnitude);
    }
  }
}

TEST_F(TwoStages, AStageThatReadsAnotherMicrobatchIsFound) {
  std::swap(stored.inputs[1][0], stored.inputs[1][1]);
  EXPECT_GT(worst().error, 0.5);
  EXPECT_EQ(worst().layer, 1U);
  EXPECT_FALSE(worst().gradient);
}

TEST_F(TwoStages, AGradientOfAnotherMicrobatchIsFound) {
  std::swap(stored.grad_outputs[0][0], stored.grad_outputs[0][1]);
  EXPECT_GT(worst().error, 0.5);
  EXPECT_EQ(worst().layer, 0U);
  EXPECT_TRUE(worst().gradient);
}

TEST_F(TwoStages, AnInputThatWasNotGivenIsFound) {
  stored.inputs[0][1][5] += 1;
  const std::vector<HandedOn> all = reference().handed_on;
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const HandedOn& handed) {
    return handed.layer == 0 && handed.microbatch == 1 && !handed.gradient && handed.error > 0.01;
  }));
}

TEST_F(OneNumberOnAnEdge, IsRoundedToTheNearest) {
  const StepReference of = reference();
  EXPECT_EQ(second_input(of).error, 0);
  EXPECT_EQ(of.other_ways, 0U);
}

TEST_F(OneNumberOnAnEdge, IsFollowedTheOtherWay) {
  stored.inputs[1][0][0] = 1 + 0x1p-7F;
  const StepReference of = reference();
  EXPECT_EQ(second_input(of).error, 0);
  EXPECT_EQ(of.other_ways, 1U);
}

TEST_F(OneNumberOnAnEdge, IsFollowedNoFurther) {
  stored.inputs[1][0][0] = 1 - 0x1p-7F;
  const StepReference of = reference();
  EXPECT_GT(second_input(of).error, second_input(of).bound);
  EXPECT_EQ(of.other_ways, 0U);
}

TEST_F(OneNumberOnAnEdge, IsNoExcuseForOneThatIsNot) {
  stored.inputs[0][0][1] = 0x1p-9F;
  stored.inputs[1][0][0] = 1 + 0x1p-7F;
  const StepReference of = reference();
  EXPECT_GT(second_input(of).error, second_input(of).bound);
  EXPECT_EQ(of.other_ways, 0U);
}

// The gradient that leaves the step is that of the first layer's input.
TEST_F(OneNumberOnAnEdge, IsFollowedWhereItLeavesTheStep) {
  stored.grad_outputs[0][0].assign(kRows * kColumns, 0);
  stored.grad_outputs[0][0][0] = 1;
  stored.grad_outputs[0][0][1] = 0x1p-8F;
  parameters[0][kColumns] = 1;
  const std::uint32_t cell = Cells(plan.step().view().table()).of(0, 1, 0);
  EXPECT_EQ(reference().grad_inputs[cell][0], 1);
  stored.given_out.resize(reference().grad_inputs.size());
  stored.given_out[cell] = {1 + 0x1p-7F};
  stored.given_out[cell].resize(kRows * kColumns);
  stored.given_out[cell][1] = 1;
  EXPECT_EQ(reference().grad_inputs[cell][0], 1 + 0x1p-7);
}

}  // namespace
}  // namespace capo::run
