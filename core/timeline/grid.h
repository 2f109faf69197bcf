// A timeline as text: time goes to the right, a rank is a line, `.` is idle.
//
//   rank 0 |F1.0F1.1....B1.0B1.1|
//   one character is 0.5
//
// Only computations are shown. Tested by grid_test.cpp and tests/sim/timeline_of_test.cpp.

#pragma once

#include "core/timeline/timeline.h"

#include <cstddef>
#include <string>

namespace capo {

/// At most `width` characters a line, names and bars included. A task of one character shows its
/// kind (f, b, w; a composite &), a longer one its label as far as it fits. If no rank holds
/// several chunks, labels leave the chunk out: F3 is the forward of microbatch 3.
[[nodiscard]] std::string text_grid(const Timeline& timeline, std::size_t width);

}  // namespace capo
