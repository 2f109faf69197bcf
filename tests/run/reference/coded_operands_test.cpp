// Operands of codes in float64: by hand, and block by block as the kernels' own numbers have them,
// which were written apart from them.

#include "run/kernels/codes.h"
#include "run/reference/layer_parts.h"
#include "run/reference/layer_reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace capo::run::reference {
namespace {

TEST(CodedOperands, AreWhatTheirCodesStandFor) {
  EXPECT_EQ(coded_rows(Coding::Block, {1, 100, 449}, 3), (Values{1, 96, 448}));
  EXPECT_EQ(coded_rows(Coding::Block, {0, 0}, 2), (Values{0, 0}));
  EXPECT_EQ(coded_rows(Coding::Mxfp8, {1, 100, 449}, 3), (Values{1, 96, 448}));
  EXPECT_EQ(coded_rows(Coding::Block, {-17, 17}, 2), (Values{-16, 16})) << "ties go to even";
  EXPECT_EQ(coded_rows(Coding::Block, {-19, 19}, 2), (Values{-20, 20}));
}

// 300 numbers of all sizes, and what the kernels' numbers make of a block of them.
TEST(CodedOperands, AgreeWithTheNumbersOfKernels) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    Values x;
    const int middle = static_cast<int>(random() % 200) - 100;
    for (int i = 0; i < 300; ++i) {
      const double number = static_cast<double>(random()) / 2147483648.0 - 1;
      const int power = middle + static_cast<int>(random() % 24) - 12;
      x.push_back(to_float(round_to<Bf16>(static_cast<float>(std::ldexp(number, power)))));
    }
    for (const Coding coding : {Coding::Block, Coding::Mxfp8}) {
      const Values coded = coded_rows(coding, x, 300);
      const std::size_t deep = coding == Coding::Block ? 128 : 32;
      for (std::size_t first = 0; first < x.size(); first += deep) {
        const std::size_t end = std::min(first + deep, x.size());
        float largest = 0;
        for (std::size_t i = first; i < end; ++i) {
          largest = std::max(largest, std::abs(static_cast<float>(x[i])));
        }
        const BlockScale scale = coding == Coding::Block ? scale_of_block(largest)
                                                         : scale_of(exponent_of_block(largest));
        for (std::size_t i = first; i < end; ++i) {
          const E4m3 code = round_to<E4m3>(static_cast<float>(x[i]) * scale.up);
          ASSERT_EQ(coded[i], static_cast<double>(to_float(code)) * scale.down) << x[i];
        }
      }
    }
  }
}

// Three rows of one group and one of another, which is a block of its own.
TEST(CodedOperands, BlocksOfColumnsEndWithTheirGroup) {
  const Product p{.group = {0, 0, 0, 2}, .rows = 5, .groups = 3, .in = 1, .out = 1};
  EXPECT_EQ(coded_columns(Coding::Block, p, {1, 100, 449, 449, 7}, 1),
            (Values{1, 96, 448, 448, 7}));
  EXPECT_EQ(coded_columns(Coding::Block, p, {0x1p-8, 448, 1, 0x1p-9, 7}, 1),
            (Values{0x1p-8, 448, 1, 0x1p-9, 7}));
}

// Choices of a router lie token by token. Of 130 rows every other is of the first group.
TEST(CodedOperands, BlocksOfColumnsFollowTheirGroupWhereverItsRowsLie) {
  Product p{.group = {}, .rows = 130, .groups = 2, .in = 1, .out = 1};
  Values x(130, 0x1p-11);
  for (std::int64_t row = 0; row < 130; ++row) p.group.push_back(row % 2);
  x[1] = 448;
  Values coded = x;
  for (std::int64_t row = 3; row < 64; row += 2) coded[row] = 0;
  EXPECT_EQ(coded_columns(Coding::Mxfp8, p, x, 1), coded);
  for (std::int64_t row = 3; row < 130; row += 2) coded[row] = 0;
  EXPECT_EQ(coded_columns(Coding::Block, p, x, 1), coded);
}

// Beside 448 a number below 2^-10 has no code; in a block of its own it has.
TEST(CodedOperands, WeightsShareAScaleInSquaresOrInLines) {
  Values w(129 * 129, 0x1p-11);
  w[0] = 448;
  const Product p{.group = {}, .rows = 0, .groups = 1, .in = 129, .out = 129};
  const auto zeros = [](const Values& of) { return std::count(of.begin(), of.end(), 0.0); };
  EXPECT_EQ(zeros(coded_along_in(Coding::Block, p, w)), 128 * 128 - 1);
  EXPECT_EQ(coded_along_in(Coding::Block, p, w), coded_along_out(Coding::Block, p, w));
  const Values along_in = coded_along_in(Coding::Mxfp8, p, w);
  EXPECT_EQ(zeros(along_in), 31);
  EXPECT_EQ(along_in[31], 0);
  EXPECT_EQ(along_in[129], 0x1p-11);
  const Values along_out = coded_along_out(Coding::Mxfp8, p, w);
  EXPECT_EQ(zeros(along_out), 31);
  EXPECT_EQ(along_out[31], 0x1p-11);
  EXPECT_EQ(along_out[129], 0);
}

TEST(CodedOperands, InfinitiesBecomeTheLargestCodeAndNanStays) {
  const double infinite = std::numeric_limits<double>::infinity();
  const Values coded = coded_rows(Coding::Block, {infinite, std::nan(""), 3}, 3);
  EXPECT_EQ(coded[0], 448);
  EXPECT_TRUE(std::isnan(coded[1]));
  EXPECT_EQ(coded[2], 3);
}

Values numbers_between(std::mt19937& random, std::int64_t count) {
  Values values;
  for (std::int64_t i = 0; i < count; ++i) {
    const double number = static_cast<double>(random()) / 2147483648.0 - 1;
    values.push_back(rounded(std::ldexp(number, static_cast<int>(random() % 8)), DataType::Bf16));
  }
  return values;
}

// Layers whose sizes end in the middle of blocks.
TEST(CodedWeights, AreCodedOnceForEachDirection) {
  std::mt19937 random(7);
  for (const Coding coding : {Coding::Block, Coding::Mxfp8}) {
    for (const ModuleKind kind :
         {ModuleKind::GroupedLinear, ModuleKind::GroupedMlp, ModuleKind::MoeLayer}) {
      const bool routed = kind == ModuleKind::MoeLayer;
      LayerForm form{.kind = kind,
                     .tokens = 5,
                     .hidden = 136,
                     .ffn = 40,
                     .groups = 2,
                     .top_k = routed ? 1 : 0,
                     .coding = coding};
      LayerWeights weights{.first = numbers_between(random, 2 * 80 * 136),
                           .second = numbers_between(random, 2 * 136 * 40)};
      LayerSide side{.probabilities = Values(5, 0.5)};
      if (routed) {
        weights.norm_weight = weights.norm_bias = numbers_between(random, 136);
        weights.router = numbers_between(random, 2 * 136);
      } else {
        side.sizes = {3, 2};
      }
      if (kind == ModuleKind::GroupedLinear) {
        form.ffn = 80;
        weights.second = {};
      }
      const Values input = numbers_between(random, 5 * 136);
      const Values dy = numbers_between(random, 5 * output_columns(form));
      const LayerForward there = forward(form, weights, side, input, Rounding::AsStored);
      const Values back =
          backward(form, weights, side, input, there, dy, Rounding::AsStored).grad_input;
      const LayerWeights ahead = coded_weights(form, weights, Direction::Forward);
      const LayerWeights behind = coded_weights(form, weights, Direction::InputGradient);
      EXPECT_NE(ahead.first, weights.first);
      EXPECT_EQ(ahead.norm_weight, weights.norm_weight);
      form.weights_are_coded = true;
      EXPECT_EQ(forward(form, ahead, side, input, Rounding::AsStored).output, there.output);
      EXPECT_EQ(backward(form, behind, side, input, there, dy, Rounding::AsStored).grad_input,
                back);
    }
  }
}

}  // namespace
}  // namespace capo::run::reference
