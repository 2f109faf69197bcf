// The middle of measured times; of an even number of them the upper of the two, which was measured.

#pragma once

#include "core/base/assert.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace capo {

[[nodiscard]] inline double median(std::vector<double> times) {
  CAPO_ASSERT(!times.empty(), "a median is of something");
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace capo
