#include "core/text/order_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace capo {

namespace {

std::string_view word_of_computation(Kind kind, Delay delay) {
  switch (kind) {
    case Kind::Forward:
      return "F";
    case Kind::BackwardWeight:
      return "W";
    case Kind::BackwardInput:
      return "B";
    default:
      return delay == Delay::Always ? "B" : "BW";
  }
}

}  // namespace

Result<std::string, Inexpressible> print_tokens(const Schedule& schedule) {
  const bool several = std::any_of(schedule.ranks.begin(), schedule.ranks.end(),
                                   [](const RankOrder& rank) { return rank.chunks > 1; });
  std::string text;
  for (const RankOrder& rank : schedule.ranks) {
    if (rank.replay) {
      return Inexpressible{.reason = "tokens have no notation for a replay order of its own"};
    }
    if (!rank.resets.empty()) {
      return Inexpressible{.reason = "tokens have no notation for a reset",
                           .span = rank.resets.front().span};
    }
    const std::vector<Delay> delay = resolved_delay(rank);
    bool first = true;
    for (const Entry& entry : rank.order) {
      if (entry.kind == Kind::Idle) continue;
      if (!is_compute(entry.kind)) {
        return Inexpressible{.reason = "tokens have no notation for what computes nothing",
                             .span = entry.span()};
      }
      if (!first) text += entry.group == Group::Continues ? '&' : ' ';
      first = false;
      const Delay of_chunk = delay[entry.chunk.index()];
      text += fmt::format("{}{}", word_of_computation(entry.kind, of_chunk), entry.microbatch);
      if (several) text += fmt::format(".{}", entry.chunk - 1);
    }
    text += '\n';
  }
  return text;
}

}  // namespace capo
