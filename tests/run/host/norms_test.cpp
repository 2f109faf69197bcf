// Layer norm in double, by its definition; its gradients as differences of that, so that no formula
// of the kernels is here again.

#include "core/model/model.h"
#include "tests/run/host/tensors.h"

namespace capo::run::host {
namespace {

constexpr std::int64_t kRows = 7;
constexpr std::int64_t kColumns = 21;
constexpr float kEpsilon = 0.01F;

Values row_of(const Tensor& tensor, std::int64_t row) {
  Values values;
  for (std::int64_t i = 0; i < kColumns; ++i) values.push_back(tensor.value(row * kColumns + i));
  return values;
}

Values normalised(const Values& x) {
  const auto count = static_cast<double>(x.size());
  double mean = 0;
  for (const double value : x) mean += value / count;
  double variance = 0;
  for (const double value : x) variance += (value - mean) * (value - mean) / count;
  Values normal;
  for (const double value : x) normal.push_back((value - mean) / std::sqrt(variance + kEpsilon));
  return normal;
}

LayerNorm norm_of(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y,
                  float epsilon = 0) {
  const std::int64_t columns = weight.count();
  return {.type = x.type(),
          .rows = x.count() / columns,
          .columns = columns,
          .epsilon = epsilon,
          .x = x.data(),
          .weight = weight.data(),
          .bias = bias.data(),
          .y = y.data()};
}

struct Problem {
  explicit Problem(DataType type)
      : x(at_random(type, kRows * kColumns, 1)),
        weight(at_random(type, kColumns, 2)),
        bias(at_random(type, kColumns, 3)),
        dy(at_random(type, kRows * kColumns, 4)),
        result(at_random(type, kRows * kColumns, 5)) {}

  // The product of a row of dy with its row of y: the kernels compute the gradient of that.
  [[nodiscard]] double loss(std::int64_t row, const Values& row_of_x) const {
    const Values normal = normalised(row_of_x);
    double sum = 0;
    for (std::int64_t i = 0; i < kColumns; ++i) {
      sum += dy.value(row * kColumns + i) *
             (normal[static_cast<std::size_t>(i)] * weight.value(i) + bias.value(i));
    }
    return sum;
  }
  [[nodiscard]] LayerNormWeightGradient weight_gradient(Tensor& dweight, Tensor& dbias) {
    return {.type = x.type(),
            .gradient_type = dweight.type(),
            .rows = kRows,
            .columns = kColumns,
            .epsilon = kEpsilon,
            .x = x.data(),
            .dy = dy.data(),
            .dweight = dweight.data(),
            .dbias = dbias.data()};
  }

  Tensor x;
  Tensor weight;
  Tensor bias;
  Tensor dy;
  Tensor result;
};

TEST(HostNorms, ARowIsNormalisedThenScaledAndShifted) {
  for (const DataType type : kTypes) {
    SCOPED_TRACE(name_of(type));
    Problem p(type);
    Values expected;
    for (std::int64_t row = 0; row < kRows; ++row) {
      const Values normal = normalised(row_of(p.x, row));
      for (std::int64_t i = 0; i < kColumns; ++i) {
        expected.push_back(normal[static_cast<std::size_t>(i)] * p.weight.value(i) +
                           p.bias.value(i));
      }
    }
    const Tensor before = p.result;
    execute_twice(norm_of(p.x, p.weight, p.bias, p.result, kEpsilon), {p.result});
    expect_near(p.result, before, expected);
  }
}

TEST(HostNorms, InputGradientIsTheSlopeOfTheForward) {
  for (const DataType type : kTypes) {
    SCOPED_TRACE(name_of(type));
    Problem p(type);
    Values expected;
    for (std::int64_t row = 0; row < kRows; ++row) {
      const Values x = row_of(p.x, row);
      for (std::size_t i = 0; i < x.size(); ++i) {
        expected.push_back(slope([&](const Values& at) { return p.loss(row, at); }, x, i));
      }
    }
    const Tensor before = p.result;
    execute_twice(LayerNormGradient{.type = type,
                                    .rows = kRows,
                                    .columns = kColumns,
                                    .epsilon = kEpsilon,
                                    .x = p.x.data(),
                                    .weight = p.weight.data(),
                                    .dy = p.dy.data(),
                                    .dx = p.result.data()},
                  {p.result});
    expect_near(p.result, before, expected);
  }
}

TEST(HostNorms, WeightAndBiasGradientsAreSumsOverRows) {
  for (const DataType type : kTypes) {
    for (const DataType gradient_type : kTypes) {
      for (const Write write : {Write::Overwrite, Write::Add}) {
        SCOPED_TRACE(testing::Message() << name_of(type) << " into " << name_of(gradient_type));
        Problem p(type);
        Tensor dweight = at_random(gradient_type, kColumns, 6);
        Tensor dbias = at_random(gradient_type, kColumns, 7);
        const Tensor weight_before = dweight;
        const Tensor bias_before = dbias;
        const bool added = write == Write::Add;
        Values for_weight = added ? dweight.values() : Values(kColumns, 0.0);
        Values for_bias = added ? dbias.values() : Values(kColumns, 0.0);
        for (std::int64_t row = 0; row < kRows; ++row) {
          const Values normal = normalised(row_of(p.x, row));
          const Values dy = row_of(p.dy, row);
          for (std::size_t i = 0; i < dy.size(); ++i) {
            for_weight[i] += dy[i] * normal[i];
            for_bias[i] += dy[i];
          }
        }
        LayerNormWeightGradient call = p.weight_gradient(dweight, dbias);
        call.write = write;
        execute_twice(call, {dweight, dbias});
        expect_near(dweight, weight_before, for_weight);
        expect_near(dbias, bias_before, for_bias);
      }
    }
  }
}

TEST(HostNorms, NoRowsClearOverwrittenGradientsAndLeaveAddedOnes) {
  Problem p(DataType::Bf16);
  Tensor dweight(DataType::Bf16, Values(kColumns, -0.0));
  Tensor dbias = dweight;
  const Tensor before = dweight;
  LayerNormWeightGradient call = p.weight_gradient(dweight, dbias);
  call.rows = 0;
  call.write = Write::Add;
  execute(call);
  EXPECT_EQ(dweight.bytes(), before.bytes());
  EXPECT_EQ(dbias.bytes(), before.bytes());
  dweight.spoil_from(0);
  dbias.spoil_from(0);
  call.write = Write::Overwrite;
  execute(call);
  EXPECT_EQ(dweight.values(), Values(kColumns, 0.0));
  EXPECT_EQ(dbias.values(), Values(kColumns, 0.0));
}

// Mean 4, variance 4 and an epsilon of 0: all steps are exact.
TEST(HostNorms, ARowThatComesOutEvenIsExactToTheBit) {
  for (const DataType type : kTypes) {
    Tensor y(type, Values(4, 0.0));
    const Tensor x(type, {2, 6, 2, 6});
    execute(norm_of(x, {type, {1, 2, 3, 4}}, {type, {10, 10, 10, 0.5}}, y));
    EXPECT_EQ(y.values(), (Values{9, 12, 7, 4.5}));
  }
}

TEST(HostNorms, ALargeMeanTakesNothingFromTheVariance) {
  const Tensor x(DataType::Fp32, {1048575, 1048577, 1048575, 1048577});
  const Tensor bias(DataType::Fp32, Values(4, 0.0));
  Tensor y = bias;
  execute(norm_of(x, {DataType::Fp32, Values(4, 1.0)}, bias, y));
  EXPECT_EQ(y.values(), (Values{-1, 1, -1, 1}));
}

TEST(HostNorms, RowsOfABiasGradientAreAddedInAscendingOrder) {
  constexpr double kLarge = 16777216;  // behind which fp32 loses a one
  Tensor x(DataType::Fp32, {1, 2, 3, 4});
  Tensor dy(DataType::Fp32, {kLarge, 1, -kLarge, 1});
  Tensor dweight(DataType::Fp32, {0});
  Tensor dbias(DataType::Fp32, {8});
  execute(LayerNormWeightGradient{.type = DataType::Fp32,
                                  .gradient_type = DataType::Fp32,
                                  .write = Write::Add,
                                  .rows = 4,
                                  .columns = 1,
                                  .epsilon = 1,
                                  .x = x.data(),
                                  .dy = dy.data(),
                                  .dweight = dweight.data(),
                                  .dbias = dbias.data()});
  EXPECT_EQ(dbias.value(0), 9);
}

}  // namespace
}  // namespace capo::run::host
