#include "core/rules/context.h"

#include "core/base/assert.h"
#include "core/base/index.h"
#include "core/rules/plan_view.h"
#include "core/rules/wiring.h"

#include <algorithm>
#include <tuple>

namespace capo {

namespace {

// Counts the tallies, and notes the entries that run ahead. The members of a composite run
// together, so an output of one of them is not there yet for the others.
void count(OrderView& view, Naming naming) {
  view.tally.assign(as_index(std::max(view.holder->chunks, 0)), {});
  view.ahead.clear();
  view.uncounted.clear();
  const auto tally_of = [&view](const Entry& entry) {
    return view.knows(entry.chunk) ? &view.tally[entry.chunk.index()] : nullptr;
  };
  for (std::size_t begin = 0, end = 0; begin < view.entries.size(); begin = end) {
    end = begin + 1;
    if (OrderView::is_added(view.entries[begin])) {
      view.uncounted.push_back(static_cast<std::uint32_t>(begin));
    }
    for (; end < view.entries.size() && view.entries[end].group == Group::Continues; ++end)
      view.uncounted.push_back(static_cast<std::uint32_t>(end));
    for (std::size_t at = begin; at < end && naming == Naming::Counted; ++at) {
      const Entry& entry = view.entries[at];
      const ChunkTally* tally = tally_of(entry);
      if (tally != nullptr && tally->lacks_need_of(entry.kind, entry.microbatch))
        view.ahead.push_back(static_cast<std::uint32_t>(at));
    }
    for (std::size_t at = begin; at < end; ++at) {
      if (ChunkTally* tally = tally_of(view.entries[at])) tally->add(view.entries[at].kind);
    }
  }
}

// Delays as resolved_delay() finds them, which the tallies of a capture order know already.
void resolve_delay(OrderView& view) {
  if (view.replay || view.holder->delay) {
    view.delay = resolved_delay(*view.holder);
    return;
  }
  view.delay.resize(view.tally.size());
  std::transform(view.tally.begin(), view.tally.end(), view.delay.begin(),
                 [](const ChunkTally& tally) {
                   if (tally.inputs > 0) return Delay::Mixed;
                   return tally.weights > 0 ? Delay::Always : Delay::Never;
                 });
}

// How often a count occurs in a sorted list.
std::int64_t votes_for(std::int32_t count, const std::vector<std::int32_t>& sorted) {
  const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), count);
  return last - first;
}

std::int32_t largest_plus_one(const std::vector<OrderView>& orders) {
  std::int32_t largest = kNoMicrobatch;
  for (const OrderView& order : orders) {
    for (const Entry& entry : order.entries) {
      if (is_compute(entry.kind)) largest = std::max<std::int32_t>(largest, entry.microbatch);
    }
  }
  return largest + 1;
}

}  // namespace

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

Context::Context(const Input& input, const CheckOptions& options)
    : input_(input), options_(options) {
  look_again();
}

Context::Context(const Context& like, const CheckOptions& options)
    : input_(like.input_),
      options_(options),
      like_(&like),
      orders_(like.orders_),
      microbatches_(like.microbatches_) {
}

void Context::forget_graphs() {
  if (plan_view_) te_plan_ = plan_view_->te_plan();
  plan_view_.reset();
  for (const OrderView& order : orders_) order.by_microbatch.reset();
  for (const auto& wiring : wirings_) wiring->forget_graphs();
}

void Context::look_again() {
  like_ = nullptr;
  clean_orders_ = false;
  te_plan_.reset();
  plan_view_.reset();
  wirings_.clear();
  const auto& ranks = schedule().ranks;
  std::size_t views = 0;
  const auto look_at = [&](std::size_t rank, std::span<const Entry> entries, bool replay) {
    if (views == orders_.size()) orders_.emplace_back();
    OrderView& view = orders_[views++];
    view.rank = static_cast<std::int32_t>(rank);
    view.replay = replay;
    view.holder = &ranks[rank];
    view.entries = entries;
    view.by_microbatch.reset();
    count(view, schedule().naming);
    resolve_delay(view);
  };
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    look_at(r, ranks[r].order, false);
    if (ranks[r].replay) look_at(r, *ranks[r].replay, true);
  }
  orders_.resize(views);
  if (schedule().microbatches) {
    microbatches_ = *schedule().microbatches;
  } else {
    microbatches_ = counted() ? usual_count() : largest_plus_one(orders_);
  }
}

// The number of forwards that most chunks have; a tie goes to the number that more have backwards
// of, then to TE's own reading of the totals, then to the larger.
std::int32_t Context::usual_count() {
  forwards_.clear();
  backwards_.clear();
  std::int64_t total = 0;
  std::int64_t chunks = 0;
  for (const OrderView& order : orders_) {
    for (const ChunkTally& tally : order.tally) {
      ++chunks;
      total += tally.forwards + tally.backwards;
      if (tally.forwards > 0) forwards_.push_back(tally.forwards);
      if (tally.backwards > 0) backwards_.push_back(tally.backwards);
    }
  }
  std::sort(forwards_.begin(), forwards_.end());
  std::sort(backwards_.begin(), backwards_.end());
  const std::int64_t te = chunks == 0 ? 0 : total / chunks / 2;
  std::tuple<std::int64_t, std::int64_t, bool, std::int32_t> best{};
  for (const auto* counts : {&forwards_, &backwards_}) {
    for (std::size_t i = 0; i < counts->size(); ++i) {
      const std::int32_t count = (*counts)[i];
      if (i > 0 && (*counts)[i - 1] == count) continue;
      best = std::max(
          best, {votes_for(count, forwards_), votes_for(count, backwards_), count == te, count});
    }
  }
  return std::get<3>(best);
}

const std::vector<std::unique_ptr<Wiring>>& Context::wirings() const {
  const auto& ranks = schedule().ranks;
  if (!wirings_.empty() || ranks.empty()) return wirings_;
  if (like_ != nullptr) {
    for (const auto& wiring : like_->wirings())
      wirings_.push_back(std::make_unique<Wiring>(*wiring, options_.environment));
    return wirings_;
  }
  const auto wire = [&](bool replay) {
    wirings_.push_back(std::make_unique<Wiring>(schedule(), options_.environment, options_.groups,
                                                microbatches_, replay));
  };
  wire(false);
  const bool replays = std::any_of(ranks.begin(), ranks.end(),
                                   [](const RankOrder& rank) { return rank.replay.has_value(); });
  if (replays) wire(true);
  return wirings_;
}

Context::~Context() = default;

bool Context::plan_wanted() const {
  return PlanView::wanted(input_, options_);
}

const PlanView& Context::plan_view() const {
  if (!plan_view_) {
    CAPO_ASSERT(plan_wanted(), "the pass Buffers runs where there is a plan");
    plan_view_ = std::make_unique<PlanView>(PlanView::Subject{
        input_, options_, microbatches_, wirings(), like_ == nullptr ? te_plan_ : like_->te_plan_});
  }
  return *plan_view_;
}

const OrderView& Context::order_of(const Wiring& wiring, std::int32_t rank) const {
  const auto captured = std::partition_point(
      orders_.begin(), orders_.end(), [&](const OrderView& order) { return order.rank < rank; });
  CAPO_ASSERT(captured != orders_.end() && captured->rank == rank, "every rank has an order");
  // The replay order of a rank follows its capture order.
  return wiring.replay() && captured->holder->replay ? *std::next(captured) : *captured;
}

bool Context::judged_before(const Wiring& wiring, const std::vector<std::int32_t>& ranks) const {
  return wiring.replay() && std::none_of(ranks.begin(), ranks.end(), [&](std::int32_t rank) {
           return schedule().ranks[RankId(rank).index()].replay.has_value();
         });
}

namespace {

std::vector<std::uint32_t> positions_by_microbatch(const OrderView& order) {
  std::vector<std::uint32_t> positions;
  std::int32_t most = -1;  // the largest microbatch
  for (std::uint32_t at = 0; at < order.entries.size(); ++at) {
    const Entry& entry = order.entries[at];
    if (is_compute(entry.kind) && order.knows(entry.chunk)) {
      positions.push_back(at);
      most = std::max<std::int32_t>(most, entry.microbatch);
    }
  }
  const auto microbatches = as_index(most + 1);
  const std::size_t cells = as_index(order.holder->chunks) * microbatches;
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
    return entry.chunk.index() * microbatches + entry.microbatch.index();
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
  if (!order.by_microbatch) {
    order.by_microbatch =
        std::make_shared<const std::vector<std::uint32_t>>(positions_by_microbatch(order));
  }
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
