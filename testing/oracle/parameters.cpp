#include "testing/oracle/parameters.h"

namespace capo::oracle {

namespace {

using enum OfParameters;

// Whether the parameters are there just before a step.
bool there(const std::vector<OfParameters>& steps, std::size_t at) {
  for (std::size_t before = at; before > 0; --before) {
    if (steps[before - 1] != Compute) return steps[before - 1] == Gather;
  }
  for (std::size_t behind = at; behind < steps.size(); ++behind) {
    if (steps[behind] != Compute) return steps[behind] == GiveUp;
  }
  return true;
}

bool is_wrong(const std::vector<OfParameters>& steps, std::size_t at) {
  return there(steps, at) == (steps[at] == Gather);
}

// Whether a wrong step stands between this one and the move before it.
bool follows_a_wrong_one(const std::vector<OfParameters>& steps, std::size_t at) {
  for (std::size_t before = at; before > 0 && steps[before - 1] == Compute; --before) {
    if (is_wrong(steps, before - 1)) return true;
  }
  return false;
}

}  // namespace

std::vector<std::size_t> without_parameters(const std::vector<OfParameters>& steps) {
  std::vector<std::size_t> found;
  for (std::size_t at = 0; at < steps.size(); ++at) {
    if (is_wrong(steps, at) && !follows_a_wrong_one(steps, at)) found.push_back(at);
  }
  return found;
}

}  // namespace capo::oracle
