// The float64 reference rounds where a module writes to memory.
//
//   1 + 2^-8 + 2^-20   in bf16   lies between 1 and 1 + 2^-7, nearer to the latter
//
// A double has more digits than any type here, so whatever lies below a type's last digit can be
// rounded away in its pattern, where a carry goes on into the exponent by itself. That holds while
// the type has all of its digits; smaller values, and those that are not finite, take longer.
// Tested by tests/run/reference/rounded_test.cpp.

#pragma once

#include "core/model/model.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace capo::run::reference {

/// To the nearest value of a type, ties to even; Fp32 rounds to float.
class Rounder {
 public:
  explicit Rounder(DataType type);

  [[nodiscard]] double operator()(double value) const {
    const auto pattern = std::bit_cast<std::uint64_t>(value);
    const std::uint64_t exponent = pattern >> kFraction & kNotFinite;
    if (exponent < normal_ || exponent == kNotFinite) return slowly(value);
    const int cut = kFraction + 1 - digits_;
    const std::uint64_t below_half = (std::uint64_t{1} << (cut - 1)) - 1;
    const std::uint64_t up = pattern + below_half + (pattern >> cut & 1U);
    const auto nearest = std::bit_cast<double>(up >> cut << cut);
    if (std::abs(nearest) <= largest_) return nearest;
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  }

  /// Multiples of two to this power are the values of the type near this one.
  [[nodiscard]] int step(double value) const;

 private:
  static constexpr int kFraction = 52;  // bits of a double's fraction
  static constexpr std::uint64_t kNotFinite = 0x7ff;

  [[nodiscard]] double slowly(double value) const;

  int digits_;            // binary, of a significand
  int least_;             // two to this power is the smallest value above zero
  double largest_;        // finite
  std::uint64_t normal_;  // exponents of doubles from here on have all digits in the type
};

/// How a layer's products see their operands: as they are stored, or as what the codes of blocks
/// stand for.
enum class Coding : std::uint8_t { None, Block, Mxfp8 };

/// Two to the power of an exponent that a double has.
[[nodiscard]] double power_of_two(int exponent);

/// Rounder(type)(value)
[[nodiscard]] double rounded(double value, DataType type);
/// The second nearest of a value that the type does not have; else the value.
[[nodiscard]] double rounded_other_way(double value, DataType type);

}  // namespace capo::run::reference
