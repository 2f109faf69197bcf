// The reference of a step against a chain of layers done by hand, and what it says of a step that
// is wired wrongly.

#include "run/reference/step_reference.h"
#include "tests/run/running.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

namespace capo::run {
namespace {

// Two linear stages on one rank, two microbatches, fp32 so that hardly anything is rounded.
class TwoStages : public ::testing::Test {
 protected:
  TwoStages() {
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

  static Module linear() {
    Module module = small(ModuleKind::Linear);
    module.dtype = DataType::Fp32;
    return module;
  }

  VerifiedPlan plan =
      verified(typed("capo 1\nplacement chain\nrank 0 chunks 2\nrank 0: F1 F1 F2 B2 B1 F2 B2 B1\n"),
               every_layer(linear()));
  StepLayers layers = StepLayers::of(plan.step()).value();
  Program program = program_of(plan.step().view().table(), plan.step().replayed()).value();
  StepValues given = draw_values(plan.step(), layers, program, SizeKind::Balanced, 1, 1);
  std::vector<std::vector<float>> parameters;
  StoredOperands stored;
};

TEST_F(TwoStages, WhatAStepHandsOnIsAsItShouldBe) {
  EXPECT_LT(reference().handed_on, 1e-7);
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
  EXPECT_GT(reference().handed_on, 0.5);
}

TEST_F(TwoStages, AGradientOfAnotherMicrobatchIsFound) {
  std::swap(stored.grad_outputs[0][0], stored.grad_outputs[0][1]);
  EXPECT_GT(reference().handed_on, 0.5);
}

TEST_F(TwoStages, AnInputThatWasNotGivenIsFound) {
  stored.inputs[0][1][5] += 1;
  EXPECT_GT(reference().handed_on, 0.01);
}

}  // namespace
}  // namespace capo::run
