#include <capo/core/rules/context.h>

#include <capo/core/base/assert.h>
#include <capo/core/rules/plan_view.h>
#include <capo/core/rules/wiring.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace capo {

namespace {

OrderView view_of(std::int32_t rank, const RankOrder& holder, std::span<const Entry> entries,
                  bool replay) {
  OrderView view{.rank = rank, .replay = replay, .holder = &holder, .entries = entries};
  view.tally.resize(static_cast<std::size_t>(std::max(holder.chunks, 0)));
  for (const Entry& entry : entries) {
    if (!view.knows(entry.chunk)) continue;
    ChunkTally& tally = view.tally[static_cast<std::size_t>(entry.chunk) - 1];
    switch (entry.kind) {
      case Kind::Forward:
        ++tally.forwards;
        break;
      case Kind::Backward:
        ++tally.backwards;
        break;
      case Kind::BackwardInput:
        ++tally.inputs;
        break;
      case Kind::BackwardWeight:
        ++tally.weights;
        break;
      default:
        break;
    }
  }
  view.delay = resolved_delay(holder);
  return view;
}

// The number of forwards that most chunks have; a tie goes to the number that more have backwards
// of, then to TE's own reading of the totals, then to the larger.
std::int32_t usual_count(const std::vector<OrderView>& orders) {
  struct Votes {
    std::int64_t forwards = 0;
    std::int64_t backwards = 0;
  };
  std::map<std::int32_t, Votes> votes;
  std::int64_t total = 0;
  std::int64_t chunks = 0;
  for (const OrderView& order : orders) {
    for (const ChunkTally& tally : order.tally) {
      ++chunks;
      total += tally.forwards + tally.backwards;
      if (tally.forwards > 0) ++votes[tally.forwards].forwards;
      if (tally.backwards > 0) ++votes[tally.backwards].backwards;
    }
  }
  const std::int64_t te = chunks == 0 ? 0 : total / chunks / 2;
  std::int32_t best = 0;
  std::tuple<std::int64_t, std::int64_t, bool> best_rank{};
  for (const auto& [count, of_count] : votes) {
    const std::tuple rank{of_count.forwards, of_count.backwards, count == te};
    if (rank < best_rank) continue;
    best = count;
    best_rank = rank;
  }
  return best;
}

std::int32_t largest_plus_one(const std::vector<OrderView>& orders) {
  std::int32_t largest = kNoMicrobatch;
  for (const OrderView& order : orders) {
    for (const Entry& entry : order.entries) {
      if (is_compute(entry.kind)) largest = std::max(largest, entry.microbatch);
    }
  }
  return largest + 1;
}

}  // namespace

std::int32_t ChunkTally::of(Kind kind) const {
  switch (kind) {
    case Kind::Forward:
      return forwards;
    case Kind::Backward:
      return backwards;
    case Kind::BackwardInput:
      return inputs;
    case Kind::BackwardWeight:
      return weights;
    default:
      return 0;
  }
}

std::size_t OrderView::find(Kind kind, std::int32_t chunk, std::int32_t k) const {
  std::size_t at = 0;
  for (; at < entries.size(); ++at) {
    if (entries[at].kind == kind && entries[at].chunk == chunk && k-- == 0) break;
  }
  return at;
}

std::size_t OrderView::find_last(Kind kind, std::int32_t chunk) const {
  for (std::size_t at = entries.size(); at > 0; --at) {
    if (entries[at - 1].kind == kind && entries[at - 1].chunk == chunk) return at - 1;
  }
  return entries.size();
}

const CheckOptions& Context::nothing_declared() {
  static const CheckOptions kNothing;
  return kNothing;
}

Context::Context(const Input& input, const CheckOptions& options)
    : input_(input), options_(options) {
  const auto& ranks = input.schedule.ranks;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const auto rank = static_cast<std::int32_t>(r);
    orders_.push_back(view_of(rank, ranks[r], ranks[r].order, false));
    if (ranks[r].replay) orders_.push_back(view_of(rank, ranks[r], *ranks[r].replay, true));
  }
  microbatches_ = input.schedule.microbatches.value_or(counted() ? usual_count(orders_)
                                                                 : largest_plus_one(orders_));
  if (ranks.empty()) return;
  wirings_.push_back(std::make_unique<Wiring>(input.schedule, options.environment, options.groups,
                                              microbatches_, false));
  const bool replays = std::any_of(ranks.begin(), ranks.end(),
                                   [](const RankOrder& rank) { return rank.replay.has_value(); });
  if (!replays) return;
  wirings_.push_back(std::make_unique<Wiring>(input.schedule, options.environment, options.groups,
                                              microbatches_, true));
}

Context::~Context() = default;

bool Context::plan_wanted() const {
  return PlanView::wanted({input_, options_, microbatches_, wirings_});
}

const PlanView* Context::plan_view() const {
  if (!plan_view_ && plan_wanted()) {
    plan_view_ =
        std::make_unique<PlanView>(PlanView::Subject{input_, options_, microbatches_, wirings_});
  }
  return plan_view_.get();
}

const OrderView& Context::order_of(const Wiring& wiring, std::int32_t rank) const {
  const auto found = std::find_if(orders_.begin(), orders_.end(), [&](const OrderView& order) {
    const bool wanted = order.holder->replay.has_value() && wiring.replay();
    return order.rank == rank && order.replay == wanted;
  });
  CAPO_ASSERT(found != orders_.end(), "every rank has an order");
  return *found;
}

namespace {

std::vector<std::uint32_t> positions_by_microbatch(const OrderView& order) {
  std::vector<std::uint32_t> positions;
  std::int32_t most = -1;  // the largest microbatch
  for (std::uint32_t at = 0; at < order.entries.size(); ++at) {
    const Entry& entry = order.entries[at];
    if (is_compute(entry.kind) && entry.microbatch != kNoMicrobatch && order.knows(entry.chunk)) {
      positions.push_back(at);
      most = std::max(most, entry.microbatch);
    }
  }
  const auto microbatches = static_cast<std::size_t>(most) + 1;
  const std::size_t cells = static_cast<std::size_t>(order.holder->chunks) * microbatches;
  if (cells > 8 * positions.size() + 64) {  // a table of them would be mostly empty
    const auto key = [&order](std::uint32_t at) {
      return std::tuple(order.entries[at].chunk, order.entries[at].microbatch, at);
    };
    std::sort(positions.begin(), positions.end(),
              [&key](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
    return positions;
  }
  const auto cell = [&](std::uint32_t at) {
    const Entry& entry = order.entries[at];
    return (static_cast<std::size_t>(entry.chunk) - 1) * microbatches +
           static_cast<std::size_t>(entry.microbatch);
  };
  std::vector<std::uint32_t> next(cells + 1, 0);
  for (const std::uint32_t at : positions) ++next[cell(at) + 1];
  for (std::size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  std::vector<std::uint32_t> sorted(positions.size());
  for (const std::uint32_t at : positions) sorted[next[cell(at)]++] = at;
  return sorted;
}

}  // namespace

void Context::for_each_microbatch(const OrderView& order,
                                  const std::function<void(const MicrobatchView&)>& visit) {
  if (!order.by_microbatch) order.by_microbatch = positions_by_microbatch(order);
  const std::vector<std::uint32_t>& positions = *order.by_microbatch;
  for (std::size_t begin = 0; begin < positions.size();) {
    const Entry& first = order.entries[positions[begin]];
    std::size_t end = begin + 1;
    while (end < positions.size() && order.entries[positions[end]].chunk == first.chunk &&
           order.entries[positions[end]].microbatch == first.microbatch) {
      ++end;
    }
    visit({.chunk = first.chunk,
           .microbatch = first.microbatch,
           .positions = std::span(positions).subspan(begin, end - begin)});
    begin = end;
  }
}

}  // namespace capo
