// Tokens travel between the computations that make them and those that read them.
//
//   rank 0: dispatch-F1.0 F1.0 B1.0      what dispatch-F1.0 takes along is not made yet
//
// Exchanges of a forward come behind it, ahead of its backward and of what that exchanges; those of
// a backward behind the forward, and all of them on one side of the backward: in between tokens are
// away. An exchange of a microbatch that its chunk does not run has nothing to take along. Looks at
// one chunk at a time; that an exchange reads what another stage made is stage_order's. One finding
// for each exchange. Tested by exchange_order_test.cpp and tests/corpus/rules/D06/.

#include "core/diag/diagnostics.h"
#include "core/graph/lowered.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace capo::rules {

namespace {

constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

// Of one microbatch of a chunk: the first entry of each sort.
struct Passes {
  std::size_t forward = kNowhere;
  std::size_t backward = kNowhere;
  std::size_t of_backward = kNowhere;  ///< an exchange
};

using Places = std::map<std::pair<std::int32_t, std::int32_t>, Passes>;

Places places_of(const OrderView& order) {
  Places places;
  for (std::size_t at = 0; at < order.entries.size(); ++at) {
    const Entry& entry = order.entries[at];
    const bool backwards = is_exchange(entry.kind) && !is_forward_exchange(entry.kind);
    if (entry.kind != Kind::Forward && !is_backward(entry.kind) && !backwards) continue;
    Passes& passes = places[{entry.chunk, entry.microbatch}];
    std::size_t& first = backwards                     ? passes.of_backward
                         : entry.kind == Kind::Forward ? passes.forward
                                                       : passes.backward;
    first = std::min(first, at);
  }
  return places;
}

// What an exchange stands on the wrong side of, and why that side is wrong.
struct Conflict {
  std::size_t with;
  const char* why;
};

std::optional<Conflict> conflict_of(const OrderView& order, std::size_t at, const Passes& passes) {
  const auto together = [&](std::size_t other) {
    return other != kNowhere && words::run_together(order, at, other);
  };
  if (at < passes.forward || together(passes.forward))
    return Conflict{passes.forward, "which makes the tokens that it takes along"};
  if (together(passes.backward))
    return Conflict{passes.backward, "which needs the tokens in their place"};
  if (is_forward_exchange(order.entries[at].kind)) {
    if (passes.backward < at)
      return Conflict{passes.backward, "which needs the tokens in their place"};
    if (passes.of_backward < at)
      return Conflict{passes.of_backward, "which belongs to the backward already"};
  } else if (passes.of_backward < passes.backward && passes.backward < at) {
    return Conflict{passes.backward, "which so computes while the tokens are away"};
  }
  return std::nullopt;
}

Diagnostic misplaced(const Context& context, const OrderView& order, std::size_t at,
                     const Conflict& conflict) {
  const Entry& other = order.entries[conflict.with];
  const bool together = words::run_together(order, at, conflict.with);
  const bool early = at < conflict.with;
  const std::string own = words::quoted(context, order.entries[at]);
  const std::string name = words::quoted(context, other);
  Diagnostic finding{.rule = "D06", .family = Family::Dependencies};
  if (together) {
    finding.message = fmt::format("{} runs together with {}, {}", words::placed(context, order, at),
                                  name, conflict.why);
    finding.help.text = fmt::format("take {} out of the composite", own);
  } else {
    finding.message = fmt::format("{} runs {} {} {}, {}", words::placed(context, order, at),
                                  early ? "before" : "behind", name,
                                  words::later(order, at, conflict.with), conflict.why);
    finding.help.text = fmt::format("move {} {} {}", own, early ? "behind" : "before", name);
  }
  finding.labels = {{order.entries[at].span(), ""}, {other.span(), ""}};
  finding.witness = words::entries(context, order, {at, conflict.with});
  return finding;
}

Diagnostic of_nothing(const Context& context, const OrderView& order, std::size_t at) {
  const Entry& entry = order.entries[at];
  return {.rule = "D06",
          .family = Family::Dependencies,
          .message = fmt::format("{} takes tokens of microbatch {} along, which {} does not run",
                                 words::placed(context, order, at), entry.microbatch,
                                 words::part(context, order, entry.chunk)),
          .labels = {{entry.span(), ""}},
          .help = {.text = "remove it, or correct its microbatch"},
          .witness = words::entries(context, order, {at})};
}

// Of chunks that there are not or that never run other rules speak, and of microbatches beyond
// those that are declared.
bool is_anothers(const Context& context, const OrderView& order, const Entry& entry) {
  if (!order.knows(entry.chunk) || order.of(entry.chunk).absent()) return true;
  return !context.counted() && context.schedule().microbatches &&
         entry.microbatch >= context.microbatches();
}

}  // namespace

void exchange_order(const Context& context, Diagnostics& out) {
  for (const OrderView& order : context.orders()) {
    if (std::none_of(order.entries.begin(), order.entries.end(),
                     [](const Entry& entry) { return is_exchange(entry.kind); }))
      continue;
    const Places places = places_of(order);
    for (std::size_t at = 0; at < order.entries.size(); ++at) {
      const Entry& entry = order.entries[at];
      if (!is_exchange(entry.kind)) continue;
      const auto found = places.find({entry.chunk, entry.microbatch});
      const bool runs = found != places.end() && found->second.forward != kNowhere;
      const auto conflict = runs ? conflict_of(order, at, found->second) : std::nullopt;
      const bool wrong = runs ? conflict.has_value() : !is_anothers(context, order, entry);
      if (!wrong || !out.wants("D06")) continue;
      out.keep(runs ? misplaced(context, order, at, *conflict) : of_nothing(context, order, at));
    }
  }
}

}  // namespace capo::rules
