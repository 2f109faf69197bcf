// Operands of products of codes in float64.
//
// It is written from docs/fp8.md and from nothing else, with logarithms where kernels have bits, so
// that it stays a second opinion. Tested by coded_operands_test.cpp.

#include "run/reference/layer_parts.h"
#include "run/reference/layer_reference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace capo::run::reference {

namespace {

constexpr double kMost = 448;
constexpr int kLeastNormal = -6;  // two to this power is the least code of four digits
constexpr int kDigits = 3;        // behind the first
constexpr double kWholeCodes = 0x1.8p52;

// The number of the code nearest to a value, the even one of two.
double nearest_code(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? value : std::copysign(kMost, value);
  const double size = std::min(std::abs(value), kMost);
  if (size == 0) return value;
  const int power = std::max(std::ilogb(size), kLeastNormal) - kDigits;
  const double steps = (std::ldexp(size, -power) + kWholeCodes) - kWholeCodes;
  return std::copysign(std::ldexp(steps, power), value);
}

// Two to the power of this is what codes of a block are multiplied by. The share is taken in fp32,
// as the recipes say.
int power_of(Coding coding, double largest) {
  const auto size = static_cast<float>(largest);
  if (coding == Coding::Block) {
    if (size == 0 || std::isinf(size)) return 0;
    return -std::min(std::ilogb(static_cast<float>(kMost) / size), 127);
  }
  const float share = size * (1.0F / static_cast<float>(kMost));
  if (share == 0) return -127;
  if (std::isinf(share)) return 127;
  const int power = std::ilogb(share);
  return std::max(std::ldexp(1.0F, power) < share ? power + 1 : power, -127);
}

// Codes the numbers of one block; at(i) is one of them.
template <typename At>
void code_block(Coding coding, std::int64_t count, At at) {
  double largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double size = std::abs(at(i));
    largest = size > largest ? size : largest;  // false of a NaN
  }
  const int power = power_of(coding, largest);
  for (std::int64_t i = 0; i < count; ++i) {
    at(i) = std::ldexp(nearest_code(std::ldexp(at(i), -power)), power);
  }
}

std::int64_t deep(Coding coding) {
  return coding == Coding::Block ? 128 : 32;
}

// Codes a matrix of each group, in blocks of so many rows and columns.
Values in_blocks(Coding coding, Values w, const Product& p, std::int64_t high, std::int64_t wide) {
  for (std::int64_t g = 0; g < p.groups; ++g) {
    double* const of = w.data() + g * p.out * p.in;
    for (std::int64_t row = 0; row < p.out; row += high) {
      for (std::int64_t column = 0; column < p.in; column += wide) {
        const std::int64_t rows = std::min(high, p.out - row);
        const std::int64_t columns = std::min(wide, p.in - column);
        code_block(coding, rows * columns, [&](std::int64_t i) -> double& {
          return of[(row + i / columns) * p.in + column + i % columns];
        });
      }
    }
  }
  return w;
}

}  // namespace

Values coded_rows(Coding coding, const Values& x, std::int64_t columns) {
  Values coded = x;
  for (std::int64_t row = 0; row < std::ssize(x); row += columns) {
    for (std::int64_t first = 0; first < columns; first += deep(coding)) {
      code_block(coding, std::min(deep(coding), columns - first),
                 [&](std::int64_t i) -> double& { return coded[row + first + i]; });
    }
  }
  return coded;
}

Values coded_columns(Coding coding, const Product& p, const Values& x, std::int64_t columns) {
  Values coded = x;
  for (const std::vector<std::int64_t>& rows : rows_of_groups(p)) {
    for (std::int64_t first = 0; first < std::ssize(rows); first += deep(coding)) {
      const std::int64_t count = std::min(deep(coding), std::ssize(rows) - first);
      for (std::int64_t column = 0; column < columns; ++column) {
        code_block(coding, count, [&](std::int64_t i) -> double& {
          return coded[rows[first + i] * columns + column];
        });
      }
    }
  }
  return coded;
}

Values coded_along_in(Coding coding, const Product& p, const Values& w) {
  return in_blocks(coding, w, p, coding == Coding::Block ? 128 : 1, deep(coding));
}

Values coded_along_out(Coding coding, const Product& p, const Values& w) {
  return in_blocks(coding, w, p, deep(coding), coding == Coding::Block ? 128 : 1);
}

LayerWeights coded_weights(const LayerForm& form, LayerWeights weights, Direction direction) {
  if (form.coding == Coding::None) return weights;
  const auto coded = [&](const Values& w, std::int64_t in, std::int64_t out) {
    const Product p{.groups = form.groups, .in = in, .out = out};
    return direction == Direction::Forward ? coded_along_in(form.coding, p, w)
                                           : coded_along_out(form.coding, p, w);
  };
  const std::int64_t in_all_groups = form.groups * form.hidden;
  weights.first = coded(weights.first, form.hidden, std::ssize(weights.first) / in_all_groups);
  weights.second = coded(weights.second, std::ssize(weights.second) / in_all_groups, form.hidden);
  return weights;
}

}  // namespace capo::run::reference
