// A timeline as text and as a Chrome trace.
//
//   rank 0 |F1.0F1.1....B1.0B1.1|         time goes to the right, a rank a line, `.` is idle
//
// The trace opens in Perfetto and chrome://tracing: a process a rank, a thread a stream, what a
// rank holds as a counter. Traces count in microseconds; a unit of the costs is shown as one,
// whatever it is. Pictures have a place of their own later. Tested by draw_timeline_test.cpp.

#pragma once

#include "sim/simulation.h"

#include <cstddef>
#include <string>

namespace capo {

/// At most `width` characters a line, names and bars included. A task of one character shows its
/// kind (f, b, w; a composite &), one of more its label as far as it fits. Where ranks hold one
/// chunk each, labels leave it out: F3 is the forward of microbatch 3.
[[nodiscard]] std::string text_grid(const Simulation& simulation, std::size_t width);

[[nodiscard]] std::string chrome_trace(const Simulation& simulation);

}  // namespace capo
