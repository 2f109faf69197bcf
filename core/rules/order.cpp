// The rules about what comes before what in one rank's order.
//
//   [1, -1.5, -1]           the weight gradient comes before the backward that feeds it: S24
//
// Each looks at one rank alone; what several ranks make impossible together is for stages.cpp.
// Tested by order_test.cpp, tests/core/enumeration/parameters_test.cpp and tests/corpus/rules/S23,
// S24, D01, D02, D05 and D06.

#include "core/graph/lowered.h"
#include "core/rules/context.h"
#include "core/rules/families.h"
#include "core/rules/findings.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capo::rules {

namespace {

// An action that runs ahead of what it needs, as S23 and S24 tell it.
struct Ahead {
  Kind kind;
  Kind needs;
  std::string_view name;    ///< of the kind
  std::string_view needed;  ///< the name of the kind that it needs
  const char* lacks;
};
constexpr Ahead kBackwards{.kind = Kind::Backward,
                           .needs = Kind::Forward,
                           .name = "backward",
                           .needed = "forward",
                           .lacks = "the activations are not there yet"};
constexpr Ahead kWeights{.kind = Kind::BackwardWeight,
                         .needs = Kind::Backward,
                         .name = "weight gradient",
                         .needed = "backward",
                         .lacks = "nothing is queued for it yet"};

Diagnostic ahead_finding(const Context& context, const OrderView& order, const Ahead& ahead,
                         std::size_t at) {
  const Entry& entry = order.entries[at];
  const std::size_t needed = order.find(ahead.needs, entry.chunk, entry.microbatch);
  const bool together = words::run_together(order, at, needed);
  return {.message = fmt::format("{} is the {} of microbatch {}, whose {} {} {}",
                                 words::placed(context, order, at), ahead.name, entry.microbatch,
                                 ahead.needed, together ? "runs" : "comes only",
                                 words::later(order, at, needed)),
          .labels = {{entry.span(), ahead.lacks},
                     {order.entries[needed].span(), fmt::format("its {} is here", ahead.needed)}},
          .help = {.text = fmt::format("move it behind {}; the k-th {} of a chunk and the k-th {} "
                                       "belong together",
                                       words::quoted(context, order.entries[needed]), ahead.needed,
                                       ahead.name)},
          .witness = words::entries(context, order, {at, needed})};
}

// In no beginning of an order has a chunk run more backwards than forwards, nor more weight
// gradients than backwards.
//
//   [1, -1, -1, 1]          the second backward of chunk 1 comes before its second forward
//   [1, -1.5, -1]           the weight gradient of chunk 1 comes before its backward
//
// Counted microbatches are first in, first out, so the k-th backward needs the k-th forward. TE
// binds a weight gradient to the newest backward of its chunk, so a wrong place runs the wrong
// graph or dies on an empty queue. If microbatches are named this is backward_before_forward's and
// weight_before_backward's concern.
template <const Ahead& kAhead>
void ahead(const Context& context, Findings& out) {
  if (!context.counted()) return;
  for (const OrderView& order : context.orders()) {
    for (const std::uint32_t at : order.ahead) {
      const Entry& entry = order.entries[at];
      if (entry.kind != kAhead.kind) continue;
      // A weight gradient that is not delayed is weight_undeclared's.
      if (entry.kind == Kind::BackwardWeight && order.delay_of(entry.chunk) == Delay::Never)
        continue;
      // An entry that never gets what it needs is a matter of counts.
      if (order.of(entry.chunk).lacks_need_of(entry.kind, entry.microbatch)) continue;
      if (out.found_at(entry.span())) out.report(ahead_finding(context, order, kAhead, at));
    }
  }
}

// A cell of a table that overlaps two actions is one text for both.
bool shares_its_text(const OrderView& order, std::size_t at) {
  const auto& entries = order.entries;
  const auto beside = [&](std::size_t other) {
    return other < entries.size() && entries[other].span() == entries[at].span();
  };
  return entries[at].group != Group::Alone && (beside(at + 1) || (at > 0 && beside(at - 1)));
}

// The one action that is meant: "`0B1`".
std::string quoted_action(const Context& context, const OrderView& order, std::size_t at) {
  const Entry& entry = order.entries[at];
  if (!shares_its_text(order, at)) return words::quoted(context, entry);
  return fmt::format("`{}`", words::entry_text(context, order, entry.action()));
}

// It says where the action stands: "`0B1` at index 1", "`0B1` of `(0F1;0B1)OVERLAP_F_B` at index
// 1".
std::string placed_action(const Context& context, const OrderView& order, std::size_t at) {
  const std::string placed = words::placed(context, order, at);
  if (!shares_its_text(order, at)) return placed;
  return fmt::format("{} of {}", quoted_action(context, order, at), placed);
}

// On every stage, a backward comes after the forward of the same microbatch.
//
//   0B0,0F0                 the activations that 0B0 reads are stored by 0F0
//
// If microbatches are counted, S23 says this of the k-th of each.
void backward_before_forward(const Context& context, Findings& out) {
  if (context.counted()) return;
  for (const OrderView& order : context.orders()) {
    Context::for_each_microbatch(order, [&](const MicrobatchView& view) {
      const auto first = [&](auto fits) {
        return std::find_if(view.positions.begin(), view.positions.end(),
                            [&](std::uint32_t at) { return fits(order.entries[at].kind); });
      };
      const auto needed = first([](Kind kind) { return kind == Kind::Forward; });
      const auto reader =
          first([](Kind kind) { return kind == Kind::Backward || kind == Kind::BackwardInput; });
      if (needed == view.positions.end() || reader == view.positions.end()) return;
      const bool together = words::run_together(order, *needed, *reader);
      if ((*needed < *reader && !together) || !out.found()) return;
      const std::string forward = quoted_action(context, order, *needed);
      std::vector<Label> labels{{order.entries[*reader].span(), ""}};
      if (order.entries[*needed].span() != order.entries[*reader].span()) {
        labels.push_back({order.entries[*needed].span(), "the forward is here"});
      }
      out.report({.message = fmt::format("{} runs {} {}, whose activations it reads",
                                         placed_action(context, order, *reader),
                                         together ? "together with" : "before", forward),
                  .labels = std::move(labels),
                  .help = {.text = fmt::format("move {}{} behind {}",
                                               quoted_action(context, order, *reader),
                                               together ? " out of the composite," : "", forward)},
                  .witness = words::entries(context, order, {*reader, *needed})});
    });
  }
}

// On every stage, a weight gradient comes after the backward of the same microbatch that feeds it.
//
//   0F0,0W0,0I0             the operands that 0W0 multiplies are queued by 0I0
//
// If microbatches are counted, S24 says this of the k-th of each.
void weight_before_backward(const Context& context, Findings& out) {
  if (context.counted()) return;
  for (const OrderView& order : context.orders()) {
    if (std::all_of(order.delay.begin(), order.delay.end(),
                    [](Delay delay) { return delay == Delay::Never; }))
      continue;  // weight_undeclared's
    Context::for_each_microbatch(order, [&](const MicrobatchView& view) {
      const auto first = [&](auto fits) {
        return std::find_if(view.positions.begin(), view.positions.end(),
                            [&](std::uint32_t at) { return fits(order.entries[at].kind); });
      };
      const Delay delay = order.delay_of(view.chunk);
      if (delay == Delay::Never) return;
      // In a mixed chunk only a split-off input half queues anything.
      const Kind feeder = delay == Delay::Mixed ? Kind::BackwardInput : Kind::Backward;
      const auto queued = first([feeder](Kind kind) { return kind == feeder; });
      const auto reader = first([](Kind kind) { return kind == Kind::BackwardWeight; });
      if (queued == view.positions.end() || reader == view.positions.end()) return;
      const bool together = words::run_together(order, *queued, *reader);
      if ((*queued < *reader && !together) || !out.found()) return;
      out.report({.message = fmt::format("{} runs {} {}, which queues its operands",
                                         words::placed(context, order, *reader),
                                         together ? "together with" : "before",
                                         words::quoted(context, order.entries[*queued])),
                  .labels = {{order.entries[*reader].span(), ""},
                             {order.entries[*queued].span(), "the backward is here"}},
                  .help = {.text = fmt::format("move {} behind {}",
                                               words::quoted(context, order.entries[*reader]),
                                               words::quoted(context, order.entries[*queued]))},
                  .witness = words::entries(context, order, {*reader, *queued})});
    });
  }
}

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

// Whether they are there when the step begins.
std::vector<Parameters> at_the_beginning(const OrderView& order) {
  std::vector<Parameters> chunks(order.tally.size());
  for (std::size_t at = 0; at < order.entries.size(); ++at) {
    const Entry& entry = order.entries[at];
    if (!order.knows(entry.chunk) || !moves_parameters(entry.kind)) continue;
    Parameters& of = chunks[entry.chunk.index()];
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
  return {.message = fmt::format("{} {}", words::placed(context, order, at), words.what),
          .labels = {{order.entries[at].span(), ""},
                     {order.entries[by].span(), std::move(words.label)}},
          .help = {.text = std::move(words.help)},
          .witness = words::entries(context, order, {at, by})};
}

void find_away(const Context& context, const OrderView& order, Findings& out) {
  std::vector<Parameters> chunks = at_the_beginning(order);
  for (std::size_t at = 0; at < order.entries.size(); ++at) {
    const Entry& entry = order.entries[at];
    const bool moves = moves_parameters(entry.kind);
    if (!order.knows(entry.chunk) || !(moves || is_compute(entry.kind))) continue;
    Parameters& of = chunks[entry.chunk.index()];
    if (!of.spoken_of) continue;
    const bool needed = entry.kind != Kind::Unshard;
    if (of.there != needed && !of.reported) {
      of.reported = true;
      if (out.found()) out.report(away(context, order, at, of.by));
    }
    if (moves) of = {.spoken_of = true, .there = entry.kind == Kind::Unshard, .by = at};
  }
}

// A chunk computes behind the unshard that gathers its parameters and before the reshard that gives
// them up.
//
//   rank 0: unshard1 F1.0 reshard1 B1.0     B1.0 multiplies with what reshard1 has given up
//
// A chunk whose order has neither keeps its parameters all the time; if a reshard comes first, they
// were there when the step began. An unshard of what is there is at fault too, and so is a reshard
// of what is not: PyTorch's runtime stops at any of the three in the middle of the step, at a W as
// at an F or B. The members of a composite count in the order in which they are listed, as in the
// task graph. There is one finding from an unshard or reshard to the next. That ranks gather in one
// order is collective_order's.
void parameters_away(const Context& context, Findings& out) {
  for (const OrderView& order : context.orders()) {
    if (std::any_of(order.entries.begin(), order.entries.end(),
                    [](const Entry& entry) { return moves_parameters(entry.kind); }))
      find_away(context, order, out);
  }
}

constexpr std::size_t kNoPass = std::numeric_limits<std::size_t>::max();

// The first entry of each sort that a microbatch of a chunk has; kNoPass if it has none.
struct FirstPasses {
  std::size_t forward = kNoPass;
  std::size_t backward = kNoPass;
  std::size_t of_backward = kNoPass;  ///< an exchange
  std::vector<std::size_t> all;       ///< all entries of these sorts, in their order
};

using Places = std::map<std::pair<std::int32_t, std::int32_t>, FirstPasses>;

Places places_of(const OrderView& order) {
  Places places;
  for (std::size_t at = 0; at < order.entries.size(); ++at) {
    const Entry& entry = order.entries[at];
    const bool backwards = is_exchange(entry.kind) && !is_forward_exchange(entry.kind);
    if (!is_exchange(entry.kind) && entry.kind != Kind::Forward && !is_backward(entry.kind))
      continue;
    FirstPasses& passes = places[{entry.chunk, entry.microbatch}];
    passes.all.push_back(at);
    if (is_exchange(entry.kind) && !backwards) continue;
    std::size_t& first = backwards                     ? passes.of_backward
                         : entry.kind == Kind::Forward ? passes.forward
                                                       : passes.backward;
    first = std::min(first, at);
  }
  return places;
}

// Whether the chunk is what experts do: its forward stands alone between a dispatch and a combine,
// and its backward between a combine and a dispatch, so that it computes on rows that have arrived
// and its results go back.
bool is_of_experts(const OrderView& order, const FirstPasses& passes) {
  const std::vector<std::size_t>& all = passes.all;
  if (all.size() != 6 || all[1] != passes.forward || all[4] != passes.backward) return false;
  const auto is = [&](std::size_t step, Kind kind) {
    return order.entries[all[step]].kind == kind;
  };
  for (std::size_t step = 1; step < all.size(); ++step) {
    if (words::run_together(order, all[step - 1], all[step])) return false;
  }
  return is(0, Kind::DispatchForward) && is(2, Kind::CombineForward) &&
         is(3, Kind::CombineBackward) && is(5, Kind::DispatchBackward);
}

// An exchange stands on the wrong side of an entry.
struct Conflict {
  std::size_t with;
  const char* why;  ///< why that side is wrong
};

std::optional<Conflict> conflict_of(const OrderView& order, std::size_t at,
                                    const FirstPasses& passes) {
  const auto together = [&](std::size_t other) {
    return other != kNoPass && words::run_together(order, at, other);
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
  Diagnostic finding;
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
  return {.message = fmt::format("{} takes tokens of microbatch {} along, which {} does not run",
                                 words::placed(context, order, at), entry.microbatch,
                                 words::part(context, order, entry.chunk)),
          .labels = {{entry.span(), ""}},
          .help = {.text = "remove it, or correct its microbatch"},
          .witness = words::entries(context, order, {at})};
}

// Other rules speak of chunks that do not exist or never run, and of microbatches beyond those that
// are declared.
bool is_anothers(const Context& context, const OrderView& order, const Entry& entry) {
  if (!order.knows(entry.chunk) || order.of(entry.chunk).absent()) return true;
  return !context.counted() && context.schedule().microbatches &&
         entry.microbatch >= context.microbatches();
}

// Tokens travel between the computations that make them and those that read them.
//
//   rank 0: dispatch-F1.0 F1.0 B1.0      what dispatch-F1.0 takes along is not made yet
//
// Exchanges of a forward come behind it, ahead of its backward and of what that exchanges. Those of
// a backward come behind the forward, and all of them on one side of the backward: in between
// tokens are away. They may be where the chunk is what experts do, which takes one exchange on each
// side of the forward and of the backward; if one side is without, rows or their gradients are lost
// on the way. An exchange of a microbatch that its chunk does not run has nothing to take
// along. The rule looks at one chunk at a time; that an exchange reads what another stage made is
// stage_order's. There is one finding for each exchange.
void exchange_order(const Context& context, Findings& out) {
  for (const OrderView& order : context.orders()) {
    if (std::none_of(order.entries.begin(), order.entries.end(),
                     [](const Entry& entry) { return is_exchange(entry.kind); }))
      continue;
    const Places places = places_of(order);
    for (std::size_t at = 0; at < order.entries.size(); ++at) {
      const Entry& entry = order.entries[at];
      if (!is_exchange(entry.kind)) continue;
      const auto found = places.find({entry.chunk, entry.microbatch});
      const bool runs = found != places.end() && found->second.forward != kNoPass;
      if (runs && is_of_experts(order, found->second)) continue;
      const auto conflict = runs ? conflict_of(order, at, found->second) : std::nullopt;
      const bool wrong = runs ? conflict.has_value() : !is_anothers(context, order, entry);
      if (!wrong || !out.found()) continue;
      out.report(runs ? misplaced(context, order, at, *conflict) : of_nothing(context, order, at));
    }
  }
}

constexpr Rule kOrderRules[] = {
    {kBackwardAhead, "backward-ahead", "backwards run ahead of forwards", Family::Shape,
     Pass::Order, ahead<kBackwards>},
    {kWeightAhead, "weight-ahead", "weight gradients run ahead of backwards", Family::Shape,
     Pass::Order, ahead<kWeights>},
    {"D01", "backward-before-forward", "a backward before its own forward", Family::Dependencies,
     Pass::Order, backward_before_forward},
    {"D02", "weight-before-backward", "a weight gradient before its own backward",
     Family::Dependencies, Pass::Order, weight_before_backward},
    {"D05", "parameters-away", "a chunk without its parameters, or with them twice",
     Family::Dependencies, Pass::Order, parameters_away},
    {"D06", "exchange-order", "an exchange of tokens out of its place", Family::Dependencies,
     Pass::Order, exchange_order},
};

}  // namespace

std::span<const Rule> order_rules() {
  return kOrderRules;
}

}  // namespace capo::rules
