// Jackson's rule: the shortest sequence of one machine's jobs that may be interrupted. Tested by
// bounds_test.cpp.

#pragma once

#include <vector>

namespace capo::optimise {

struct Job {
  double head;  ///< it begins no earlier
  double takes;
  double tail;  ///< so much follows its end
};

/// The time by which all jobs and what follows them have ended at the earliest.
[[nodiscard]] double jackson(std::vector<Job> jobs);

}  // namespace capo::optimise
