// Two tensors of one form, to the bit; and one against float64.
//
// Equal means equal bits, NaN included. Where they differ: how many elements, the first of them,
// the largest distance in units in the last place of their type, and the relative error by
// Frobenius' norm. Tested by tests/run/reference/compare_test.cpp.

#pragma once

#include "core/model/model.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace capo::run {

struct Difference {
  std::int64_t differing = 0;  ///< elements
  std::int64_t first = 0;      ///< index of the first of them
  float should = 0;            ///< its value
  float is = 0;
  std::int64_t ulps = 0;  ///< the largest distance; of a NaN beside a number the largest there is
  double relative_error = 0;  ///< infinite where either holds a NaN that the other does not
};

/// It is null if they are equal to the bit. Both are given as floats, of numbers of `type`.
[[nodiscard]] std::optional<Difference> difference(std::span<const float> should,
                                                   std::span<const float> is, DataType type);

/// |is - should| / |should| by Frobenius' norm; 0 where both are zero, infinite where only `should`
/// is, or where `is` holds a NaN; elements that are finite in neither are left out.
[[nodiscard]] double relative_error(std::span<const double> should, std::span<const float> is);
/// This one is of a sum, relative to the magnitudes of what was added: where the terms cancel, the
/// sum itself has no digits left that could be compared.
[[nodiscard]] double relative_error(std::span<const double> should, std::span<const float> is,
                                    std::span<const double> magnitudes);

/// The largest error of a single element, relative to the larger of its own magnitude and the root
/// mean square of those of its row, `columns` at a time: an element that cancels is as far off as
/// its row's others are. Elements that are finite in neither are left out.
[[nodiscard]] double worst_element(std::span<const double> should, std::span<const float> is,
                                   std::span<const double> magnitudes, std::int64_t columns);

/// The bound of an error in a tensor of a type. Both sides round at the same places, so
/// that only sums in fp32 differ, and in bf16 and fp16 the few values that these put on the other
/// side of a rounding.
[[nodiscard]] double error_bound(DataType type);
/// A single element may be off by so many times the bound of its tensor. In bf16 that is two and a
/// half units in the last place: one by which its own rounding may go the other way, and one by
/// which all its operands may, since errors of operands add up as the terms of the sum do, to the
/// root mean square of its row. In fp32 it is 2^-21, the error of a sum in layer_reference.h, times
/// how far the absolute values of 10^4 terms exceed their sum.
inline constexpr double kElementBounds = 4;

/// The smallest number that a type holds with all its digits: what is smaller has an absolute
/// error.
[[nodiscard]] double smallest_normal(DataType type);
/// Absolute values, at least that of the type: what a tensor's error is relative to.
[[nodiscard]] std::vector<double> sizes_in(std::span<const double> values, DataType type);

}  // namespace capo::run
