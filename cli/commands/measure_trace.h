// `capo measure --trace kineto.json`: what the actions of torch's traces took, as flags for
// `simulate`, `compare` and `draw`.
//
//   --cost r0.c1:f=1204.5,b=1310,w=905
//
// Each number is the median of an action's times in a chunk of a rank, in microseconds. Actions
// that ran together are left out, since no trace says what either took. Tested by
// tests/cli/measure_test.cpp.

#pragma once

#include "core/text/limits.h"

#include <string>
#include <vector>

namespace capo::cli {

struct TraceRequest {
  std::vector<std::string> files;  ///< traces, a rank each or one of all
  std::string output = "-";
  Limits limits;
};

/// Writes the flags. Returns the exit code.
[[nodiscard]] int measure_traces(const TraceRequest& request);

}  // namespace capo::cli
