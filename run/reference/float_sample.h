// The places of a sample of float64: a few of many, drawn so that every stretch is met.
//
// Tested by tests/run/reference/sampled_reference_test.cpp.

#pragma once

#include <cstdint>
#include <vector>

namespace capo::run {

/// Draws so many places.
struct FloatSample {
  std::uint64_t seed = 1;
  std::int64_t count = 0;  ///< of rows of a microbatch, and of columns of a weight in all groups

  /// One of each of `count` equal parts of the places from 0 on, ascending; all where there are no
  /// more than that.
  [[nodiscard]] std::vector<std::int64_t> of(std::int64_t places, std::uint64_t stream) const;
};

}  // namespace capo::run
