// The rules about graphs that are let go of for good.
//
//   F1.0 reset1 B1.0        the graph of B1.0 is gone when it is to be replayed: Y04
//
// A reset is between replays, and is none: everything else judges an order as if it had none, and
// the rules here look at nothing but what stands behind a reset. What was replayed in front of one
// is done, as far as the host goes. Y02 is about memory, under TE's plan; the others need no plan.
// Tested by resets_test.cpp, tests/exhaustive/resets.cpp and tests/corpus/rules/Y02 to Y05.

#include "core/rules/context.h"
#include "core/rules/families.h"
#include "core/rules/findings.h"
#include "core/rules/words.h"
#include "core/text/action_token.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace capo::rules {

namespace {

// The chunk and the microbatch whose graphs are captured, replayed and let go of together.
using Cell = std::pair<std::int32_t, std::int32_t>;

// The cells of one rank that have graphs, and which of them its resets let go of.
class Graphs {
 public:
  explicit Graphs(const RankOrder& rank) : rank_(rank) {
    for (const Entry& entry : rank.order) {
      if (is_compute(entry.kind)) captured_[entry.chunk].insert(entry.microbatch);
    }
    alive_ = captured_;
    for (const Reset& reset : rank.resets) let_go_.push_back(take(reset));
    if (let_go_of_all()) last_ = find_last();
  }

  // Whether there is any graph that the reset could let go of.
  [[nodiscard]] bool has(const Reset& reset) const {
    if (reset.chunk == Reset::kAllChunks) return !captured_.empty();
    const auto chunk = captured_.find(reset.chunk);
    return chunk != captured_.end() &&
           (reset.microbatch == kNoMicrobatch || chunk->second.contains(reset.microbatch));
  }
  // How many cells the reset at `at` lets go of.
  [[nodiscard]] std::size_t let_go(std::size_t at) const { return let_go_[at]; }
  // The reset that lets go of the last graphs; null if some are left, or none were captured.
  [[nodiscard]] const Reset* last() const { return last_; }

 private:
  using Cells = std::map<std::int32_t, std::set<std::int32_t>>;  // microbatches by chunk

  std::size_t take(const Reset& reset) {
    std::size_t taken = 0;
    const auto clear = [&](std::set<std::int32_t>& chunk) {
      taken += chunk.size();
      chunk.clear();
    };
    if (reset.chunk == Reset::kAllChunks) {
      for (auto& [chunk, microbatches] : alive_) clear(microbatches);
      alive_.clear();
      return taken;
    }
    const auto chunk = alive_.find(reset.chunk);
    if (chunk == alive_.end()) return 0;
    if (reset.microbatch == kNoMicrobatch)
      clear(chunk->second);
    else
      taken = chunk->second.erase(reset.microbatch);
    if (chunk->second.empty()) alive_.erase(chunk);
    return taken;
  }

  [[nodiscard]] bool let_go_of_all() const { return alive_.empty() && !captured_.empty(); }

  [[nodiscard]] const Reset* find_last() const {
    std::size_t at = let_go_.size();
    while (let_go_[at - 1] == 0) --at;
    return &rank_.resets[at - 1];
  }

  const RankOrder& rank_;
  Cells captured_;
  Cells alive_;  // behind all resets
  std::vector<std::size_t> let_go_;
  const Reset* last_ = nullptr;
};

std::string quoted(const Reset& reset) {
  return fmt::format("`{}`", to_token(reset));
}

// "`reset1` behind index 3": as many cells of a table, or entries, are in front.
std::string placed(const Context& context, const OrderView& order, const Reset& reset) {
  if (reset.behind == 0)
    return fmt::format("{} before the first entry{}", quoted(reset),
                       words::of_order(context, order));
  return fmt::format("{} behind index {}{}", quoted(reset),
                     words::index_of(order, reset.behind - 1), words::of_order(context, order));
}

// The orders that resets stand in.
template <typename Visit>
void for_each_with_resets(const Context& context, const Visit& visit) {
  for (const OrderView& order : context.orders()) {
    if (order.is_replayed() && !order.holder->resets.empty()) visit(order);
  }
}

// The last backward that is captured; its grad input is held by TE until its graphs are reset.
std::optional<Action> last_backward(const RankOrder& rank) {
  const auto last = std::find_if(rank.order.rbegin(), rank.order.rend(), [](const Entry& entry) {
    return entry.kind == Kind::Backward || entry.kind == Kind::BackwardInput;
  });
  if (last == rank.order.rend()) return std::nullopt;
  return last->action();
}

bool sends_gradient_of(const Entry& send, const std::optional<Action>& backward) {
  return backward && send.kind == Kind::SendBackward && send.chunk == backward->chunk &&
         send.microbatch == backward->microbatch;
}

// A tensor that graphs hand out is sent before the last graph of their pool is let go of.
//
//   F1.0 B1.0 F2.0 B2.0 reset send-F1.0     the activation lies in a pool that nothing holds
//
// With reuse of buffers TE keeps outputs and grad inputs as weak references, and what a caller gets
// owns no memory either: it lies in the pool of the graphs. PyTorch keeps a pool while one of its
// graphs is left, so that a reset of some harms none of the others; with the last one the pool's
// free blocks may go back to the device. Only the newest grad input is held by itself.
void let_go_before_sent(const Context& context, Findings& out) {
  const PlanOptions& plan = context.options().plan;
  if (plan.kind != PlanKind::Te) return;
  const Severity severity = plan.possible_is_error ? Severity::Error : Severity::Warning;
  for_each_with_resets(context, [&](const OrderView& order) {
    const Graphs graphs(*order.holder);
    if (graphs.last() == nullptr) return;
    const Reset& reset = *graphs.last();
    const std::optional<Action> held = last_backward(*order.holder);
    for (std::size_t at = reset.behind; at < order.entries.size(); ++at) {
      const Entry& send = order.entries[at];
      if (!is_send(send.kind) || sends_gradient_of(send, held)) continue;
      if (!out.found_at(send.span(), severity)) continue;
      out.report(
          {.severity = severity,
           .message = fmt::format("{} reads memory of the graphs' pool, of which {} lets go",
                                  words::placed(context, order, at), placed(context, order, reset)),
           .labels = {{send.span(), "this tensor owns no memory"},
                      {reset.span, "the last graph of the pool goes here"}},
           .notes = {{.text = "with reuse of buffers TransformerEngine hands out weak references; "
                              "the pool is freed when PyTorch empties its cache",
                      .span = std::nullopt}},
           .help = {.text = fmt::format("move {} behind {}, and behind the end of that send",
                                        quoted(reset), words::quoted(context, send))},
           .witness = words::entries(context, order, {at})});
    }
  });
}

// Finds, by cell, the first reset that lets go of it.
class FirstResets {
 public:
  explicit FirstResets(const std::vector<Reset>& resets) {
    for (const Reset& reset : resets) first_.try_emplace({reset.chunk, reset.microbatch}, &reset);
  }

  // Null if no reset lets go of it.
  [[nodiscard]] const Reset* of(const MicrobatchView& cell) const {
    const Reset* first = nullptr;
    for (const Cell& named : {Cell(Reset::kAllChunks, kNoMicrobatch),
                              Cell(cell.chunk, kNoMicrobatch), Cell(cell.chunk, cell.microbatch)}) {
      const auto found = first_.find(named);
      if (found == first_.end()) continue;
      if (first == nullptr || found->second->behind < first->behind) first = found->second;
    }
    return first;
  }

 private:
  std::map<Cell, const Reset*> first_;
};

// The first entry of a cell behind the reset of its graphs.
struct Late {
  const OrderView& order;
  const Reset& reset;
  std::size_t at;
  std::optional<std::size_t> before;  // the cell's last entry in front of the reset
};

// Calls `visit` with every cell that is replayed behind its reset.
template <typename Visit>
void for_each_late(const Context& context, const Visit& visit) {
  for_each_with_resets(context, [&](const OrderView& order) {
    const FirstResets first(order.holder->resets);
    Context::for_each_microbatch(order, [&](const MicrobatchView& cell) {
      const Reset* reset = first.of(cell);
      if (reset == nullptr || cell.positions.back() < reset->behind) return;
      const auto late =
          std::lower_bound(cell.positions.begin(), cell.positions.end(), reset->behind);
      Late found{.order = order, .reset = *reset, .at = *late, .before = std::nullopt};
      if (late != cell.positions.begin()) found.before = *std::prev(late);
      visit(found);
    });
  });
}

std::string graphs_of(const Context& context, const Late& late) {
  const Entry& entry = late.order.entries[late.at];
  return fmt::format("the graphs of {}, microbatch {}",
                     words::part(context, late.order, entry.chunk), std::int32_t{entry.microbatch});
}

// No graph is replayed again once it is reset.
//
//   F1.0 B1.0 reset1 F1.1 B1.1     nothing is left that could be replayed for microbatch 1
//
// TE raises RuntimeError at the call, since 2.20 with a text of its own, before with PyTorch's.
// A microbatch that has begun and cannot be finished is reset_before_end's.
void replay_after_reset(const Context& context, Findings& out) {
  for_each_late(context, [&](const Late& late) {
    if (late.before) return;
    const Entry& entry = late.order.entries[late.at];
    if (!out.found_at(entry.span())) return;
    out.report(
        {.message = fmt::format("{} replays {}, which {} has let go of",
                                words::placed(context, late.order, late.at),
                                graphs_of(context, late), quoted(late.reset)),
         .labels = {{entry.span(), "there is no graph to replay"}, {late.reset.span, "reset here"}},
         .help = {.text =
                      fmt::format("move {} behind the last replay of its graphs, or capture again",
                                  quoted(late.reset))},
         .witness = words::entries(context, late.order, {late.at})});
  });
}

// Whoever has begun a microbatch keeps its graphs until the last of its entries.
//
//   F1.0 reset1.0 B1.0       the activations went with the graphs that B1.0 would replay
//
// It is not enough to capture again: what the forward kept is lost with the memory.
void reset_before_end(const Context& context, Findings& out) {
  for_each_late(context, [&](const Late& late) {
    if (!late.before) return;
    const Entry& entry = late.order.entries[late.at];
    const Entry& begun = late.order.entries[*late.before];
    if (!out.found_at(entry.span())) return;
    out.report({.message = fmt::format("{} needs what {} left in {}, which {} lets go of before",
                                       words::placed(context, late.order, late.at),
                                       words::quoted(context, begun), graphs_of(context, late),
                                       quoted(late.reset)),
                .labels = {{entry.span(), "its graph and its activations are gone"},
                           {late.reset.span, "reset here"},
                           {begun.span(), "replayed here"}},
                .help = {.text = fmt::format("move {} behind the last replay of its graphs",
                                             quoted(late.reset))},
                .witness = words::entries(context, late.order, {*late.before, late.at})});
  });
}

// An edit leaves a comma behind in JSON.
Help taken_away(const Context& context, const Reset& reset) {
  Help help{.text = "take it away"};
  if (context.input().form != Form::Json) help.edits = {{reset.span, ""}};
  return help;
}

// A reset finds graphs to let go of.
//
//   F1.0 B1.0 reset1 reset1     the second finds none
//   F1.0 B1.0 reset2            there never were any
//
// A second reset does no harm: TE and PyTorch skip what is gone. But the order says something that
// is not so, which is a warning. What was never captured has no graph that could be asked to go.
void reset_of_nothing(const Context& context, Findings& out) {
  for_each_with_resets(context, [&](const OrderView& order) {
    const std::vector<Reset>& resets = order.holder->resets;
    const Graphs graphs(*order.holder);
    for (std::size_t at = 0; at < resets.size(); ++at) {
      const Reset& reset = resets[at];
      if (graphs.let_go(at) > 0) continue;
      const bool again = graphs.has(reset);
      const Severity severity = again ? Severity::Warning : Severity::Error;
      if (!out.found_at(reset.span, severity)) continue;
      out.report({.severity = severity,
                  .message = fmt::format(
                      "{} finds nothing to let go of: {}", placed(context, order, reset),
                      again ? "all of it has been reset before" : "no such graph is captured"),
                  .labels = {{reset.span, again ? "this does nothing" : "there is no such graph"}},
                  .help = taken_away(context, reset)});
    }
  });
}

constexpr Rule kResetRules[] = {
    {"Y02", "let-go-before-sent", "memory that is let go of before it is sent", Family::Replay,
     Pass::Buffers, let_go_before_sent},
    {"Y03", "replay-after-reset", "a replay of graphs that are reset", Family::Replay, Pass::Resets,
     replay_after_reset},
    {"Y04", "reset-before-end", "a reset in the middle of a microbatch", Family::Replay,
     Pass::Resets, reset_before_end},
    {"Y05", "reset-of-nothing", "a reset that has nothing to let go of", Family::Replay,
     Pass::Resets, reset_of_nothing},
};

}  // namespace

std::span<const Rule> reset_rules() {
  return kResetRules;
}

}  // namespace capo::rules
