#include "optimise/jackson.h"

#include <algorithm>
#include <cstddef>
#include <queue>
#include <utility>

namespace capo::optimise {

double jackson(std::vector<Job> jobs) {
  std::sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) { return a.head < b.head; });
  using Waiting = std::pair<double, double>;  // its tail and what is left of it
  std::priority_queue<Waiting> waiting;
  double now = 0;
  double last = 0;
  for (std::size_t next = 0; next < jobs.size() || !waiting.empty();) {
    if (waiting.empty()) now = std::max(now, jobs[next].head);
    for (; next < jobs.size() && jobs[next].head <= now; ++next) {
      waiting.emplace(jobs[next].tail, jobs[next].takes);
    }
    auto [tail, left] = waiting.top();
    waiting.pop();
    const bool interrupted = next < jobs.size() && jobs[next].head < now + left;
    const double until = interrupted ? jobs[next].head : now + left;
    if (interrupted) {
      waiting.emplace(tail, left - (until - now));
    } else {
      last = std::max(last, until + tail);
    }
    now = until;
  }
  return last;
}

}  // namespace capo::optimise
