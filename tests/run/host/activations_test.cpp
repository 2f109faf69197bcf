// SwiGLU in double, by its definition; its gradients as differences of that, so that no formula of
// the kernels is here again.

#include "core/model/model.h"
#include "tests/run/host/tensors.h"

namespace capo::run::host {
namespace {

constexpr std::int64_t kCount = 9;  // rows
constexpr std::int64_t kUsed = 6;
constexpr std::int64_t kColumns = 11;

enum class Probabilities : std::uint8_t { Given, None };

double swiglu(double gate, double linear, double probability) {
  return gate / (1 + std::exp(-gate)) * linear * probability;
}

struct Problem {
  Problem(DataType type, Probabilities the_given)
      : given(the_given),
        x(at_random(type, kCount * 2 * kColumns, 1)),
        probabilities(at_random(DataType::Fp32, kCount, 2)),
        dy(at_random(type, kCount * kColumns, 3)),
        y(at_random(type, kCount * kColumns, 4)),
        dx(at_random(type, kCount * 2 * kColumns, 5)),
        dprobabilities(at_random(DataType::Fp32, kCount, 6)) {
    for (std::int64_t i = 0; i < x.count(); ++i) x.set(i, x.value(i) * 4);
    x.spoil_from(kUsed * 2 * kColumns);
    probabilities.spoil_from(kUsed);
    dy.spoil_from(kUsed * kColumns);
  }

  [[nodiscard]] Rows rows() const { return {.count = kCount, .groups = 3, .sizes = sizes.data()}; }
  [[nodiscard]] const float* factors() {
    return given == Probabilities::Given ? static_cast<const float*>(probabilities.data())
                                         : nullptr;
  }
  [[nodiscard]] double probability(std::int64_t row) const {
    return given == Probabilities::Given ? probabilities.value(row) : 1;
  }
  [[nodiscard]] double gate(std::int64_t row, std::int64_t i) const {
    return x.value(row * 2 * kColumns + i);
  }
  [[nodiscard]] double linear(std::int64_t row, std::int64_t i) const {
    return x.value(row * 2 * kColumns + kColumns + i);
  }
  [[nodiscard]] double incoming(std::int64_t row, std::int64_t i) const {
    return dy.value(row * kColumns + i);
  }
  [[nodiscard]] SwiGlu forward() {
    return {.type = x.type(),
            .rows = rows(),
            .columns = kColumns,
            .x = x.data(),
            .probabilities = factors(),
            .y = y.data()};
  }
  [[nodiscard]] SwiGluGradient gradient() {
    return {.type = x.type(),
            .rows = rows(),
            .columns = kColumns,
            .x = x.data(),
            .probabilities = factors(),
            .dy = dy.data(),
            .dx = dx.data(),
            .dprobabilities = static_cast<float*>(dprobabilities.data())};
  }

  Probabilities given;
  std::vector<std::int64_t> sizes{4, 0, 2};
  Tensor x;
  Tensor probabilities;
  Tensor dy;
  Tensor y;
  Tensor dx;
  Tensor dprobabilities;
};

// How fast dy * y of an element changes with its gate (0), linear (1) or probability (2).
double slope_at(const Problem& p, std::int64_t row, std::int64_t i, std::size_t of) {
  const auto weighed = [&](const Values& at) {
    return p.incoming(row, i) * swiglu(at[0], at[1], at[2]);
  };
  return slope(weighed, {p.gate(row, i), p.linear(row, i), p.probability(row)}, of);
}

Values expected_dx(const Problem& p) {
  Values dx;
  for (std::int64_t row = 0; row < kUsed; ++row) {
    for (const std::size_t of : {0U, 1U}) {
      for (std::int64_t i = 0; i < kColumns; ++i) dx.push_back(slope_at(p, row, i, of));
    }
  }
  return dx;
}

Values expected_dprobabilities(const Problem& p) {
  Values dprobabilities;
  for (std::int64_t row = 0; row < kUsed; ++row) {
    double sum = 0;
    for (std::int64_t i = 0; i < kColumns; ++i) sum += slope_at(p, row, i, 2);
    dprobabilities.push_back(sum);
  }
  return dprobabilities;
}

TEST(HostActivations, SwiGluGatesLinearAndWeighsIt) {
  for (const DataType type : kTypes) {
    for (const Probabilities given : {Probabilities::Given, Probabilities::None}) {
      SCOPED_TRACE(name_of(type));
      Problem p(type, given);
      Values expected;
      for (std::int64_t row = 0; row < kUsed; ++row) {
        for (std::int64_t i = 0; i < kColumns; ++i) {
          expected.push_back(swiglu(p.gate(row, i), p.linear(row, i), p.probability(row)));
        }
      }
      const Tensor before = p.y;
      execute_twice(p.forward(), {p.y});
      expect_near(p.y, before, expected);
    }
  }
}

TEST(HostActivations, GradientsAreTheSlopesOfTheForward) {
  for (const DataType type : kTypes) {
    for (const Probabilities given : {Probabilities::Given, Probabilities::None}) {
      SCOPED_TRACE(name_of(type));
      Problem p(type, given);
      const Problem before = p;
      execute_twice(p.gradient(), {p.dx, p.dprobabilities});
      expect_near(p.dx, before.dx, expected_dx(before));
      expect_near(p.dprobabilities, before.dprobabilities, expected_dprobabilities(before));
    }
  }
}

TEST(HostActivations, AnUnwantedGradientOfProbabilitiesIsLeftOut) {
  Problem p(DataType::Fp32, Probabilities::Given);
  const Problem before = p;
  SwiGluGradient call = p.gradient();
  call.dprobabilities = nullptr;
  execute(call);
  expect_near(p.dx, before.dx, expected_dx(before));
}

TEST(HostActivations, UnwantedGradientsOfRowsAreLeftOut) {
  Problem p(DataType::Fp32, Probabilities::Given);
  const Problem before = p;
  SwiGluGradient call = p.gradient();
  call.dx = nullptr;
  execute(call);
  EXPECT_EQ(p.dx.bytes(), before.dx.bytes());
  expect_near(p.dprobabilities, before.dprobabilities, expected_dprobabilities(before));
}

// A product that goes on leaves sums of parts of a row in its own result, which the last part ends.
TEST(HostActivations, SumsThatAProductLeavesAddUpToTheGradientOfAProbability) {
  constexpr std::int64_t kIn = 2 * kSummedColumns + 10;
  constexpr std::int64_t kOut = 5;
  for (const DataType type : {DataType::Bf16, DataType::Fp16}) {
    Tensor y = at_random(type, kCount * kOut, 1);
    Tensor w = at_random(type, kOut * kIn, 2);
    Tensor gates = at_random(type, kCount * 2 * kIn, 3);
    const Tensor probabilities = at_random(DataType::Fp32, kCount, 4);
    const std::vector<void*> table(2, w.data());
    const std::vector<std::int64_t> sizes{4, 2};
    struct Left {
      Tensor x, dgates, dprobabilities;
    };
    const auto product_into = [&](Left& left) {
      return GroupedProduct{
          .kind = GroupedProduct::Kind::InputGradient,
          .type = type,
          .rows = {.count = kCount, .groups = 2, .sizes = sizes.data()},
          .in = kIn,
          .out = kOut,
          .x = left.x.data(),
          .y = y.data(),
          .w = table.data(),
          .epilogue = {.probabilities = static_cast<const float*>(probabilities.data()),
                       .gates = gates.data(),
                       .dgates = left.dgates.data()}};
    };
    const Left before{at_random(type, kCount * kIn, 5), at_random(type, kCount * 2 * kIn, 6),
                      at_random(DataType::Fp32, kCount, 7)};
    Left whole = before;
    GroupedProduct call = product_into(whole);
    call.epilogue.dprobabilities = static_cast<float*>(whole.dprobabilities.data());
    execute(call);
    Left summed = before;
    call = product_into(summed);
    call.epilogue.leaves_sums = true;
    execute(call);
    execute(
        ProbabilityGradient{.type = type,
                            .rows = call.rows,
                            .columns = kIn,
                            .x = summed.x.data(),
                            .dprobabilities = static_cast<float*>(summed.dprobabilities.data())});
    EXPECT_EQ(summed.dgates.bytes(), whole.dgates.bytes());
    Values expected = whole.dprobabilities.values();
    expected.resize(6);
    expect_near(summed.dprobabilities, before.dprobabilities, expected);
  }
}

TEST(HostActivations, NullSizesAreAllRows) {
  Problem p(DataType::Fp32, Probabilities::None);
  p.y.spoil_from(0);
  SwiGlu call = p.forward();
  call.rows = {.count = kUsed};
  execute(call);
  for (std::int64_t i = 0; i < p.y.count(); ++i) {
    EXPECT_EQ(std::isnan(p.y.value(i)), i >= kUsed * kColumns) << i;
  }
}

TEST(HostActivations, FarGatesAreClosedOrOpen) {
  for (const DataType type : kTypes) {
    Tensor x(type, {-200, 200, 0, 3, 3, 3});
    Tensor y(type, Values(3, 1.0));
    execute(SwiGlu{.type = type, .rows = {.count = 1}, .columns = 3, .x = x.data(), .y = y.data()});
    EXPECT_EQ(y.values(), (Values{0, 600, 0}));
    Tensor dy(type, {1, 1, 1});
    Tensor dx(type, Values(6, 1.0));
    execute(SwiGluGradient{.type = type,
                           .rows = {.count = 1},
                           .columns = 3,
                           .x = x.data(),
                           .dy = dy.data(),
                           .dx = dx.data()});
    EXPECT_EQ(dx.values(), (Values{0, 3, 1.5, 0, 200, 0}));
  }
}

}  // namespace
}  // namespace capo::run::host
