// Products in blocks and on several threads have the bits of one loop over all rows.

#include "run/reference/layer_parts.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace capo::run::reference {
namespace {

// Rows that lie between those of other groups; the last ones are in none.
Product product_of(std::int64_t rows, std::int64_t groups, std::int64_t in, std::int64_t out) {
  Product p{.rows = rows, .groups = groups, .in = in, .out = out};
  for (std::int64_t row = 0; row < rows - 3; ++row) p.group.push_back(row * row % 7 % groups);
  return p;
}

// Numbers of which no two sums in different orders are likely to be equal.
Values numbers(std::int64_t count, double seed) {
  Values values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(seed + static_cast<double>(i)) / 3;
  return values;
}

struct Products {
  Values output;
  Values input_gradient;
  Values weight_gradient;
};

Products by_rows(const Product& p, const Values& x, const Values& w, const Values& dy) {
  Products all{.output = Values(p.rows * p.out),
               .input_gradient = Values(p.rows * p.in),
               .weight_gradient = Values(p.groups * p.out * p.in)};
  for (std::int64_t row = 0; row < std::ssize(p.group); ++row) {
    for (std::int64_t o = 0; o < p.out; ++o) {
      for (std::int64_t i = 0; i < p.in; ++i) {
        const std::int64_t weight = (p.group[row] * p.out + o) * p.in + i;
        all.output[row * p.out + o] += x[row * p.in + i] * w[weight];
        all.input_gradient[row * p.in + i] += dy[row * p.out + o] * w[weight];
        all.weight_gradient[weight] += dy[row * p.out + o] * x[row * p.in + i];
      }
    }
  }
  return all;
}

// A NaN equals one.
void expect_bits(const Values& is, const Values& should) {
  ASSERT_EQ(is.size(), should.size());
  for (std::size_t i = 0; i < is.size(); ++i) {
    if (std::isnan(is[i]) && std::isnan(should[i])) continue;
    ASSERT_EQ(std::bit_cast<std::uint64_t>(is[i]), std::bit_cast<std::uint64_t>(should[i])) << i;
  }
}

void expect_bits_of_rows(const Product& p, const Values& x) {
  const Values w = numbers(p.groups * p.out * p.in, 0.25);
  const Values dy = numbers(p.rows * p.out, 0.75);
  const Products should = by_rows(p, x, w, dy);
  expect_bits(output_of(p, x, w), should.output);
  expect_bits(input_gradient(p, dy, w), should.input_gradient);
  expect_bits(weight_gradient(p, dy, x), should.weight_gradient);
}

TEST(LayerProducts, HaveTheBitsOfOneLoopOnOneThreadAndOnSeveral) {
  for (const std::int64_t rows : {4, 9, 40, 200}) {  // the last one is worth threads
    const Product p = product_of(rows, 3, 61, 101);
    expect_bits_of_rows(p, numbers(p.rows * p.in, 0.5));
  }
}

TEST(LayerProducts, KeepWhatIsNotFiniteInItsOwnRow) {
  const Product p = product_of(12, 2, 5, 4);
  Values x = numbers(p.rows * p.in, 0.5);
  x[2 * p.in + 1] = std::numeric_limits<double>::infinity();
  x[4 * p.in] = std::numeric_limits<double>::quiet_NaN();
  expect_bits_of_rows(p, x);
}

TEST(LayerProducts, TakeGroupsWithoutRows) {
  const Product p{.group = {}, .rows = 2, .groups = 2, .in = 1, .out = 1};
  EXPECT_EQ(output_of(p, {1, 2}, {3, 4}), Values({0, 0}));
  EXPECT_EQ(input_gradient(p, {1, 2}, {3, 4}), Values({0, 0}));
  EXPECT_EQ(weight_gradient(p, {1, 2}, {3, 4}), Values({0, 0}));
}

}  // namespace
}  // namespace capo::run::reference
