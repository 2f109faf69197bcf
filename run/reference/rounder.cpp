#include "run/reference/rounder.h"

#include "core/base/assert.h"

#include <algorithm>

namespace capo::run::reference {

namespace {

// Doubles above half of it are one apart.
constexpr double kWholeNumbers = 0x1.8p52;

constexpr int kBias = 1022;  // |value| is at least half of two to the exponent without it

struct Format {
  int digits = 0;
  int least = 0;
  double largest = 0;
};

Format format_of(DataType type) {
  switch (type) {
    case DataType::Bf16:
      return {.digits = 8, .least = -133, .largest = std::ldexp(255, 120)};
    case DataType::Fp16:
      return {.digits = 11, .least = -24, .largest = 65504};
    case DataType::Fp32:
      return {.digits = 24, .least = -149, .largest = std::ldexp(16'777'215, 104)};
  }
  CAPO_UNREACHABLE();
}

// The smallest doubles have the exponent that they would have with all their digits, which is
// smaller than any type's.
int exponent_of(double value) {
  return static_cast<int>(std::bit_cast<std::uint64_t>(value) >> 52U & 0x7ffU) - kBias;
}

}  // namespace

Rounder::Rounder(DataType type)
    : digits_(format_of(type).digits),
      least_(format_of(type).least),
      largest_(format_of(type).largest),
      normal_(static_cast<std::uint64_t>(least_ + digits_ + kBias)) {
}

int Rounder::step(double value) const {
  return std::max(exponent_of(value) - digits_, least_);
}

// Scaled both ways exactly, and added to where whole numbers lie side by side: that rounds to even
// in the rounding mode that programs start with.
double Rounder::slowly(double value) const {
  if (value == 0 || !std::isfinite(value)) return value;
  const int step = this->step(value);
  const double scaled = value * power_of_two(-step);
  const double nearest = ((scaled + kWholeNumbers) - kWholeNumbers) * power_of_two(step);
  return std::copysign(nearest, value);
}

double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52U);
}

double rounded(double value, DataType type) {
  return Rounder(type)(value);
}

double rounded_other_way(double value, DataType type) {
  const Rounder rounder(type);
  const double nearest = rounder(value);
  if (nearest == value || !std::isfinite(nearest)) return nearest;
  return nearest + std::copysign(power_of_two(rounder.step(value)), value - nearest);
}

}  // namespace capo::run::reference
