// Shrinks a value with a schedule in it whose chunks and ranks are spoken of elsewhere, by modules
// or an environment: a microbatch goes, everything else stays.
//
// A sound schedule stays sound, since no action of one microbatch needs one of another. Tested by
// the tests of the generators that shrink so.

#pragma once

#include "core/minimise/edits.h"
#include "core/order/schedule.h"

#include <span>
#include <vector>

namespace capo::testing {

/// One value for each microbatch that can go; none where only one is left.
template <typename Value>
[[nodiscard]] std::vector<Value> with_fewer_microbatches(const Value& value) {
  std::vector<Value> smaller;
  const std::vector<std::int32_t> microbatches = microbatches_in(value.schedule);
  if (microbatches.size() < 2) return smaller;
  for (const std::int32_t& microbatch : microbatches) {
    smaller.push_back(value);
    smaller.back().schedule = without_microbatches(value.schedule, std::span(&microbatch, 1));
  }
  return smaller;
}

}  // namespace capo::testing
