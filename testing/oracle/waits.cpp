#include "testing/oracle/waits.h"

namespace capo::oracle {

namespace {

// How many are pending just before a step.
std::size_t pending(const std::vector<OfWaits>& steps, std::size_t at) {
  if (at == 0) return 0;
  const std::size_t before = pending(steps, at - 1);
  if (steps[at - 1] == OfWaits::Begin) return before + 1;
  return steps[at - 1] == OfWaits::Wait && before > 0 ? before - 1 : before;
}

}  // namespace

std::vector<std::size_t> waits_for_nothing(const std::vector<OfWaits>& steps) {
  std::vector<std::size_t> found;
  for (std::size_t at = 0; at < steps.size(); ++at) {
    if (steps[at] == OfWaits::Wait && pending(steps, at) == 0) found.push_back(at);
  }
  return found;
}

std::size_t left_pending(const std::vector<OfWaits>& steps) {
  return pending(steps, steps.size());
}

}  // namespace capo::oracle
