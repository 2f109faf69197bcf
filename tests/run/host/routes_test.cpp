// Groups that rows choose, by hand where a choice is exact, and in double where it is not.

#include "core/model/model.h"
#include "tests/run/host/tensors.h"

#include <numeric>
#include <set>

namespace capo::run::host {
namespace {

using Whole = std::vector<std::int64_t>;

struct Routed {
  Whole groups;
  std::vector<float> probabilities;
};

Routed routed(const RouteShape& shape, const Tensor& logits) {
  Routed result{.groups = Whole(static_cast<std::size_t>(shape.choices()), -1),
                .probabilities = std::vector<float>(static_cast<std::size_t>(shape.choices()))};
  execute(Route{.type = logits.type(),
                .shape = shape,
                .logits = logits.data(),
                .groups = result.groups.data(),
                .probabilities = result.probabilities.data()});
  return result;
}

Values softmax(const Values& logits) {
  Values shares;
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  for (const double logit : logits) shares.push_back(std::exp(logit) / sum);
  return shares;
}

Values row_of(const Tensor& logits, std::int64_t row, std::int64_t groups) {
  Values values;
  for (std::int64_t i = 0; i < groups; ++i) values.push_back(logits.value(row * groups + i));
  return values;
}

TEST(HostRoutes, TheGreatestAreChosenAndOfEqualOnesTheLower) {
  for (const DataType type : kTypes) {
    const Tensor logits(type, {1, 3, 2, 3, /**/ 0, 0, 0, 0, /**/ -2, -1, -1, -8});
    const RouteShape shape{.rows = 3, .groups = 4, .top_k = 3};
    const Routed result = routed(shape, logits);
    EXPECT_EQ(result.groups, (Whole{1, 3, 2, 0, 1, 2, 1, 2, 0}));
    for (std::size_t choice = 0; choice < result.groups.size(); ++choice) {
      const Values shares = softmax(row_of(logits, static_cast<std::int64_t>(choice) / 3, 4));
      EXPECT_NEAR(double{result.probabilities[choice]},
                  shares[static_cast<std::size_t>(result.groups[choice])], 1e-6);
    }
  }
}

// exp(200) leaves the range of fp32.
TEST(HostRoutes, LargeLogitsDoNotOverflow) {
  const Routed result =
      routed({.rows = 1, .groups = 3, .top_k = 2}, Tensor(DataType::Fp32, {200, 201, -300}));
  EXPECT_EQ(result.groups, (Whole{1, 0}));
  EXPECT_NEAR(result.probabilities[0], 1 / (1 + std::exp(-1.0)), 1e-6);
  EXPECT_NEAR(result.probabilities[1], 1 / (1 + std::exp(1.0)), 1e-6);
}

// Memory that somebody has spoilt leads to wrong groups, and to no other memory.
TEST(HostRoutes, LogitsThatAreNoNumbersChooseEachGroupOnceAtMost) {
  Tensor logits(DataType::Bf16, {1, 2, 3, 4, 5, 6, 7, 8});
  logits.set(1, std::nan(""));
  logits.spoil_from(4);
  const Routed result = routed({.rows = 2, .groups = 4, .top_k = 3}, logits);
  for (std::size_t row = 0; row < 2; ++row) {
    const std::set<std::int64_t> chosen(
        result.groups.begin() + static_cast<std::ptrdiff_t>(row * 3),
        result.groups.begin() + static_cast<std::ptrdiff_t>(row * 3 + 3));
    EXPECT_EQ(chosen.size(), 3U);
    EXPECT_GE(*chosen.begin(), 0);
    EXPECT_LT(*chosen.rbegin(), 4);
  }
}

// Three rows of two choices among four groups, of which the second has none.
TEST(HostRoutes, ChoicesAreSortedByGroupAndThenByRow) {
  const Whole groups{2, 0, 0, 3, 3, 2};
  const std::vector<float> probabilities{0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F};
  Whole sizes(4, -1);
  Whole places(6, -1);
  Whole sources(6, -1);
  std::vector<float> sorted(6);
  execute(SortRoutes{.shape = {.rows = 3, .groups = 4, .top_k = 2},
                     .groups = groups.data(),
                     .probabilities = probabilities.data(),
                     .sizes = sizes.data(),
                     .places = places.data(),
                     .sources = sources.data(),
                     .sorted_probabilities = sorted.data()});
  EXPECT_EQ(sizes, (Whole{2, 0, 2, 2}));
  EXPECT_EQ(places, (Whole{2, 0, 1, 4, 5, 3}));
  EXPECT_EQ(sources, (Whole{0, 1, 0, 2, 1, 2}));
  EXPECT_EQ(sorted, (std::vector<float>{0.2F, 0.3F, 0.1F, 0.6F, 0.4F, 0.5F}));
}

TEST(HostRoutes, CombineAddsTheChoicesOfARow) {
  const Whole places{2, 0, 1, 3};
  for (const DataType type : kTypes) {
    const Tensor x(type, {1, 2, 3, /**/ 10, 20, 30, /**/ 100, 200, 300, /**/ 5, 6, 7});
    Tensor y(type, {1, 1, 1, 2, 2, 2, 77});
    Combine call{.type = type,
                 .shape = {.rows = 2, .groups = 9, .top_k = 2},
                 .columns = 3,
                 .places = places.data(),
                 .x = x.data(),
                 .y = y.data()};
    call.write = Write::Add;
    execute(call);
    EXPECT_EQ(y.values(), Tensor(type, {102, 203, 304, 17, 28, 39, 77}).values());
    call.write = Write::Overwrite;
    execute(call);
    EXPECT_EQ(y.values(), Tensor(type, {101, 202, 303, 15, 26, 37, 77}).values());
  }
}

// The gradient of sum of g * p is a difference of that sum.
TEST(HostRoutes, TheGradientIsTheSlopeOfTheProbabilities) {
  const RouteShape shape{.rows = 7, .groups = 6, .top_k = 2};
  for (const DataType type : kTypes) {
    Tensor logits = at_random(type, shape.rows * shape.groups, 3);
    const Routed result = routed(shape, logits);
    Whole places(static_cast<std::size_t>(shape.choices()));
    std::iota(places.rbegin(), places.rend(), std::int64_t{0});
    const Tensor incoming = at_random(DataType::Fp32, shape.choices(), 4);
    Values expected;
    for (std::int64_t row = 0; row < shape.rows; ++row) {
      const auto sum = [&](const Values& of) {
        const Values shares = softmax(of);
        double all = 0;
        for (std::int64_t choice = row * 2; choice < row * 2 + 2; ++choice) {
          const auto at = static_cast<std::size_t>(choice);
          all += shares[static_cast<std::size_t>(result.groups[at])] * incoming.value(places[at]);
        }
        return all;
      };
      for (std::size_t group = 0; group < 6; ++group) {
        Values above = row_of(logits, row, 6);
        Values below = above;
        above[group] += 1e-5;
        below[group] -= 1e-5;
        expected.push_back((sum(above) - sum(below)) / 2e-5);
      }
    }
    Tensor apart = at_random(type, shape.rows * shape.groups, 5);
    RouteGradient call{.type = type,
                       .shape = shape,
                       .logits = logits.data(),
                       .groups = result.groups.data(),
                       .places = places.data(),
                       .dprobabilities = static_cast<const float*>(incoming.data()),
                       .dlogits = apart.data()};
    execute(call);
    EXPECT_LE(distance(apart.values(), Tensor(type, expected).values()), tolerance(type));
    call.dlogits = logits.data();  // in place
    execute(call);
    EXPECT_EQ(logits.bytes(), apart.bytes());
  }
}

}  // namespace
}  // namespace capo::run::host
