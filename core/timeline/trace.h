// A timeline as a Chrome trace, which Perfetto and chrome://tracing open: a process is a rank, a
// thread is a stream, and what a rank holds is a counter.
//
// Traces count in microseconds. A timeline in units of costs is shown as if each were one.
// Tested by trace_test.cpp.

#pragma once

#include "core/timeline/timeline.h"

#include <string>

namespace capo {

[[nodiscard]] std::string chrome_trace(const Timeline& timeline);

}  // namespace capo
