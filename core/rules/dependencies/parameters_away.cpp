// A chunk computes behind the unshard that gathers its parameters and before the reshard that gives
// them up.
//
//   rank 0: unshard1 F1.0 reshard1 B1.0     B1.0 multiplies with what reshard1 has given up
//
// A chunk of which an order says neither has its parameters all the time; where a reshard comes
// first, it had them when the step began. Nor is gathered what is there, or given up what is not:
// PyTorch's runtime stops at any of the three in the middle of the step, at a W as at an F or B.
// Of a composite the members count in the order in which they are listed, as in the task graph.
// One finding from an unshard or reshard to the next. That ranks gather in one order is
// collective_order's. Tested by parameters_away_test.cpp,
// tests/core/enumeration/parameters_test.cpp and tests/corpus/rules/D05/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace capo::rules {

namespace {

bool moves_parameters(Kind kind) {
  return kind == Kind::Unshard || kind == Kind::Reshard;
}

// The parameters of one chunk, as an order is gone through.
struct Parameters {
  bool spoken_of = false;  ///< the order gathers them or gives them up somewhere
  bool there = false;
  bool reported = false;  ///< that they are not as they should be
  std::size_t by = 0;     ///< the entry that made them so, or that will be the first to change it
};

// As they are when the step begins.
std::vector<Parameters> at_the_beginning(const OrderView& order) {
  std::vector<Parameters> chunks(order.tally.size());
  for (std::size_t at = 0; at < order.entries.size(); ++at) {
    const Entry& entry = order.entries[at];
    if (!order.knows(entry.chunk) || !moves_parameters(entry.kind)) continue;
    Parameters& of = chunks[static_cast<std::size_t>(entry.chunk) - 1];
    if (!of.spoken_of) of = {.spoken_of = true, .there = entry.kind == Kind::Reshard, .by = at};
  }
  return chunks;
}

struct Told {
  std::string what;   ///< what the entry does
  std::string label;  ///< of the entry that made the parameters what they are
  std::string help;
};

Told told(const Context& context, const OrderView& order, std::size_t at, std::size_t by) {
  const Entry& entry = order.entries[at];
  const std::string chunk = words::part(context, order, entry.chunk);
  const std::string name = words::quoted(context, entry);
  const std::string other = words::quoted(context, order.entries[by]);
  const std::string where = words::later(order, at, by);
  if (entry.kind == Kind::Unshard) {
    return {
        fmt::format("gathers the parameters of {}, which {} {} has gathered", chunk, other, where),
        "gathered here already", "remove one of the two"};
  }
  if (entry.kind == Kind::Reshard) {
    return {
        fmt::format("gives up the parameters of {}, which {} {} has given up", chunk, other, where),
        "given up here already", "remove one of the two"};
  }
  if (by > at) {
    return {fmt::format("computes before {} {} gathers the parameters of {}", other, where, chunk),
            "gathered here", fmt::format("move {} before {}", other, name)};
  }
  return {
      fmt::format("computes with the parameters of {}, which {} {} has given up", chunk, other,
                  where),
      "given up here",
      fmt::format("move {} behind {}, or gather the parameters again between them", other, name)};
}

Diagnostic away(const Context& context, const OrderView& order, std::size_t at, std::size_t by) {
  Told words = told(context, order, at, by);
  return {.rule = "D05",
          .family = Family::Dependencies,
          .message = fmt::format("{} {}", words::placed(context, order, at), words.what),
          .labels = {{order.entries[at].span(), ""},
                     {order.entries[by].span(), std::move(words.label)}},
          .help = {.text = std::move(words.help)},
          .witness = words::entries(context, order, {at, by})};
}

void find_away(const Context& context, const OrderView& order, Diagnostics& out) {
  std::vector<Parameters> chunks = at_the_beginning(order);
  for (std::size_t at = 0; at < order.entries.size(); ++at) {
    const Entry& entry = order.entries[at];
    const bool moves = moves_parameters(entry.kind);
    if (!order.knows(entry.chunk) || !(moves || is_compute(entry.kind))) continue;
    Parameters& of = chunks[static_cast<std::size_t>(entry.chunk) - 1];
    if (!of.spoken_of) continue;
    const bool needed = entry.kind != Kind::Unshard;
    if (of.there != needed && !of.reported) {
      of.reported = true;
      if (out.wants("D05")) out.keep(away(context, order, at, of.by));
    }
    if (moves) of = {.spoken_of = true, .there = entry.kind == Kind::Unshard, .by = at};
  }
}

}  // namespace

void parameters_away(const Context& context, Diagnostics& out) {
  for (const OrderView& order : context.orders()) {
    if (std::any_of(order.entries.begin(), order.entries.end(),
                    [](const Entry& entry) { return moves_parameters(entry.kind); }))
      find_away(context, order, out);
  }
}

}  // namespace capo::rules
