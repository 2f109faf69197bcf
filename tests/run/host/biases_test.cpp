// A bias of each group, added by rows and scaled, and its gradients, in double.

#include "core/model/model.h"
#include "tests/run/host/tensors.h"

namespace capo::run::host {
namespace {

constexpr std::int64_t kCount = 10;  // rows
constexpr std::int64_t kUsed = 7;
constexpr std::int64_t kColumns = 13;
constexpr std::array<std::size_t, kUsed> kGroups{0, 0, 0, 2, 2, 2, 2};  // of the rows in use

enum class Scales : std::uint8_t { Given, None };

struct Problem {
  Problem(DataType type, DataType bias_type, Scales the_given)
      : given(the_given),
        scales(at_random(DataType::Fp32, kCount, 1)),
        y(at_random(type, kCount * kColumns, 2)),
        dscales(at_random(DataType::Fp32, kCount, 3)) {
    for (std::uint32_t group = 0; group < 3; ++group) {
      bias.push_back(at_random(bias_type, kColumns, 4 + group));
    }
    for (Tensor& each : bias) table.push_back(each.data());
    scales.spoil_from(kUsed);
  }

  [[nodiscard]] Rows rows() const { return {.count = kCount, .groups = 3, .sizes = sizes.data()}; }
  [[nodiscard]] const float* factors() {
    return given == Scales::Given ? static_cast<const float*>(scales.data()) : nullptr;
  }
  [[nodiscard]] double scale(std::int64_t row) const {
    return given == Scales::Given ? scales.value(row) : 1;
  }
  [[nodiscard]] BiasGradient gradient(Write write) {
    return {.type = y.type(),
            .gradient_type = bias.front().type(),
            .write = write,
            .rows = rows(),
            .columns = kColumns,
            .dy = y.data(),
            .scales = factors(),
            .dbias = table.data()};
  }

  Scales given;
  std::vector<std::int64_t> sizes{3, 0, 4};
  Tensor scales;
  Tensor y;  // or dy
  Tensor dscales;
  std::vector<Tensor> bias;  // or dbias
  std::vector<void*> table;
};

Values expected_dbias(const Problem& p, std::size_t group, Write write) {
  Values dbias = write == Write::Add ? p.bias[group].values() : Values(kColumns, 0.0);
  for (std::int64_t row = 0; row < kUsed; ++row) {
    if (kGroups[static_cast<std::size_t>(row)] != group) continue;
    for (std::int64_t i = 0; i < kColumns; ++i) {
      dbias[static_cast<std::size_t>(i)] += p.scale(row) * p.y.value(row * kColumns + i);
    }
  }
  return dbias;
}

TEST(HostBiases, EachRowGetsItsGroupsBiasTimesItsScale) {
  for (const DataType type : kTypes) {
    for (const Scales given : {Scales::Given, Scales::None}) {
      SCOPED_TRACE(name_of(type));
      Problem p(type, type, given);
      Values expected;
      for (std::int64_t row = 0; row < kUsed; ++row) {
        const Tensor& bias = p.bias[kGroups[static_cast<std::size_t>(row)]];
        for (std::int64_t i = 0; i < kColumns; ++i) {
          expected.push_back(p.y.value(row * kColumns + i) + p.scale(row) * bias.value(i));
        }
      }
      const Tensor before = p.y;
      execute_twice(BiasAdd{.type = type,
                            .rows = p.rows(),
                            .columns = kColumns,
                            .bias = p.table.data(),
                            .scales = p.factors(),
                            .y = p.y.data()},
                    {p.y});
      expect_near(p.y, before, expected);
    }
  }
}

void expect_bias_gradients(DataType type, DataType gradient_type, Scales given, Write write) {
  Problem p(type, gradient_type, given);
  p.y.spoil_from(kUsed * kColumns);
  const Problem before = p;
  execute_twice(p.gradient(write), {p.bias[0], p.bias[1], p.bias[2]});
  for (std::size_t group = 0; group < p.bias.size(); ++group) {
    SCOPED_TRACE(group);
    expect_near(p.bias[group], before.bias[group], expected_dbias(before, group, write));
  }
}

TEST(HostBiases, GradientIsTheScaledSumOverTheGroupsRows) {
  for (const DataType type : kTypes) {
    for (const DataType gradient_type : kTypes) {
      for (const Scales given : {Scales::Given, Scales::None}) {
        SCOPED_TRACE(testing::Message() << name_of(type) << " into " << name_of(gradient_type));
        expect_bias_gradients(type, gradient_type, given, Write::Overwrite);
        expect_bias_gradients(type, gradient_type, given, Write::Add);
      }
    }
  }
}

TEST(HostBiases, AnEmptyGroupClearsAnOverwrittenGradientAndLeavesAnAddedOne) {
  Problem p(DataType::Bf16, DataType::Bf16, Scales::None);
  for (std::int64_t i = 0; i < kColumns; ++i) p.bias[1].set(i, -0.0);
  const Tensor before = p.bias[1];
  execute(p.gradient(Write::Add));
  EXPECT_EQ(p.bias[1].bytes(), before.bytes()) << "to the sign of zero";
  p.bias[1].spoil_from(0);
  execute(p.gradient(Write::Overwrite));
  EXPECT_EQ(p.bias[1].values(), Values(kColumns, 0.0));
}

TEST(HostBiases, GradientOfAScaleIsTheRowsProductWithItsBias) {
  for (const DataType type : kTypes) {
    SCOPED_TRACE(name_of(type));
    Problem p(type, type, Scales::None);
    p.y.spoil_from(kUsed * kColumns);
    Values expected;
    for (std::int64_t row = 0; row < kUsed; ++row) {
      const Tensor& bias = p.bias[kGroups[static_cast<std::size_t>(row)]];
      double sum = 0;
      for (std::int64_t i = 0; i < kColumns; ++i) {
        sum += p.y.value(row * kColumns + i) * bias.value(i);
      }
      expected.push_back(sum);
    }
    const Tensor before = p.dscales;
    execute_twice(ScaleGradient{.type = type,
                                .rows = p.rows(),
                                .columns = kColumns,
                                .dy = p.y.data(),
                                .bias = p.table.data(),
                                .dscales = static_cast<float*>(p.dscales.data())},
                  {p.dscales});
    expect_near(p.dscales, before, expected);
  }
}

// The gradient of one bias for all rows, which is added to it.
BiasGradient added_to_all(const Tensor& dbias, void*& table, const Tensor& dy,
                          const float* scales = nullptr) {
  return {.type = dy.type(),
          .gradient_type = dbias.type(),
          .write = Write::Add,
          .rows = {.count = dy.count() / dbias.count()},
          .columns = dbias.count(),
          .dy = dy.data(),
          .scales = scales,
          .dbias = &table};
}

TEST(HostBiases, NullSizesMakeAllRowsOneGroupAndWholeNumbersAreExact) {
  for (const DataType type : kTypes) {
    Tensor y(type, {1, 2, 3, 4});
    Tensor bias(type, {10, 20});
    Tensor scales(DataType::Fp32, {2, -1});
    void* table = bias.data();
    const auto* factors = static_cast<const float*>(scales.data());
    execute(BiasAdd{.type = type,
                    .rows = {.count = 2},
                    .columns = 2,
                    .bias = &table,
                    .scales = factors,
                    .y = y.data()});
    EXPECT_EQ(y.values(), (Values{21, 42, -7, -16}));
    execute(added_to_all(bias, table, y, factors));
    EXPECT_EQ(bias.values(), (Values{10 + 42 + 7, 20 + 84 + 16}));
  }
}

TEST(HostBiases, RowsOfAGradientAreAddedInAscendingOrder) {
  constexpr double kLarge = 16777216;  // behind which fp32 loses a one
  Tensor dy(DataType::Fp32, {kLarge, 1, -kLarge, 1});
  Tensor dbias(DataType::Fp32, {8});
  void* table = dbias.data();
  execute(added_to_all(dbias, table, dy));
  EXPECT_EQ(dbias.value(0), 9) << "8 is added to the sum, not the sum's first term";
}

}  // namespace
}  // namespace capo::run::host
