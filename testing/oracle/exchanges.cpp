#include "testing/oracle/exchanges.h"

#include <algorithm>

namespace capo::oracle {

namespace {

using enum OfTokens;

// Whether one of a sort is among the first `many` steps.
bool among(const std::vector<OfTokens>& steps, std::size_t many, OfTokens sort) {
  return std::count(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(many), sort) > 0;
}

// Whether tokens were under way when the backward before step `at` computed.
bool were_away(const std::vector<OfTokens>& steps, std::size_t at) {
  for (std::size_t before = 0; before < at; ++before) {
    if (steps[before] == Backward) return among(steps, before, OfBackward);
  }
  return false;
}

bool is_wrong(const std::vector<OfTokens>& steps, std::size_t at) {
  if (!among(steps, at, Forward)) return true;
  if (steps[at] == OfForward) return among(steps, at, Backward) || among(steps, at, OfBackward);
  return were_away(steps, at);
}

}  // namespace

std::vector<std::size_t> exchanged_out_of_place(const std::vector<OfTokens>& steps) {
  std::vector<std::size_t> found;
  // Experts compute while tokens are with them, forwards and backwards.
  if (steps == std::vector{OfForward, Forward, OfForward, OfBackward, Backward, OfBackward})
    return found;
  for (std::size_t at = 0; at < steps.size(); ++at) {
    const bool exchange = steps[at] == OfForward || steps[at] == OfBackward;
    if (exchange && is_wrong(steps, at)) found.push_back(at);
  }
  return found;
}

}  // namespace capo::oracle
