// Captured orders are judged first, and then the replayed ones together with those that are
// replayed as captured: what concerns only the latter has been said already.
//
// Tested by the replay orders in the tests of the rules that use it.

#pragma once

#include "core/rules/context.h"
#include "core/rules/wiring.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace capo {

/// Whether the wiring is of replayed orders and none of `ranks` has a replay order of its own.
[[nodiscard]] inline bool judged_before(const Context& context, const Wiring& wiring,
                                        const std::vector<std::int32_t>& ranks) {
  return wiring.replay() && std::none_of(ranks.begin(), ranks.end(), [&](std::int32_t rank) {
           const auto& all = context.schedule().ranks;
           return all[static_cast<std::size_t>(rank)].replay.has_value();
         });
}

}  // namespace capo
