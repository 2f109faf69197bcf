// What working out Megatron's calls found wrong, for the two rules that report it.

#pragma once

#include "core/rules/context.h"
#include "core/rules/wiring.h"

#include <algorithm>
#include <cstddef>

namespace capo::rules {

/// Whether the orders as captured, which are judged first, have this fault too. What a rank
/// receives depends on the other ranks' orders as well, so its own being the same is not enough.
[[nodiscard]] inline bool is_of_capture(const Context& context, const Wiring& wiring,
                                        const RoutingFault& fault) {
  const Wiring& captured = *context.wirings().front();
  const RankOrder& rank = context.schedule().ranks[static_cast<std::size_t>(fault.rank)];
  if (!wiring.replay() || rank.replay || !captured.by_megatron()) return false;
  const auto& faults = captured.megatron().faults;
  return std::find(faults.begin(), faults.end(), fault) != faults.end();
}

/// Calls visit(wiring, fault) for every fault of routing, that of a capture order once.
template <typename Visit>
void for_each_routing_fault(const Context& context, Visit visit) {
  for (const auto& wiring : context.wirings()) {
    if (!wiring->by_megatron() || !wiring->megatron_placement()) continue;
    for (const RoutingFault& fault : wiring->megatron().faults) {
      if (!is_of_capture(context, *wiring, fault)) visit(*wiring, fault);
    }
  }
}

}  // namespace capo::rules
