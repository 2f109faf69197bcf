#include "core/minimise/settle.h"

#include "core/base/index.h"

#include <algorithm>
#include <cstddef>

namespace capo {

namespace {

// Returns the largest chunk that is at most the length of the order, which is how the readers infer
// the number of chunks.
std::int32_t inferred_chunks(const std::vector<Entry>& order) {
  std::int32_t largest = 0;
  for (const Entry& entry : order) {
    if (as_index(std::int32_t{entry.chunk}) <= order.size()) {
      largest = std::max<std::int32_t>(largest, entry.chunk);
    }
  }
  return largest;
}

void settle_chunks(RankOrder& rank, Topology topology) {
  if (rank.layers.form == Layers::Form::List && rank.layers.values.empty()) rank.layers = {};
  if (topology == Topology::Custom) {
    rank.chunks_declared = true;  // the list of stages declares them
    rank.chunks = static_cast<std::int32_t>(rank.stages.size());
  } else if (rank.layers.form == Layers::Form::List) {
    rank.chunks_declared = true;
  } else if (!rank.chunks_declared) {
    rank.chunks = inferred_chunks(rank.order);
  }
  if (rank.delay) rank.delay->resize(as_index(rank.chunks), Delay::Never);
  rank.strays = 0;
}

void forget_text(std::vector<Entry>& order) {
  for (Entry& entry : order) {
    if (entry.offset != kFollowed) entry.offset = 0;
    entry.length = 0;
  }
}

void count(std::vector<Entry>& order, std::int32_t chunks) {
  for (Entry& entry : order) entry.microbatch = kNoMicrobatch;
  number_microbatches(order, chunks);
}

bool names_one(const std::vector<Entry>& order) {
  return std::any_of(order.begin(), order.end(),
                     [](const Entry& entry) { return has_microbatch(entry.kind); });
}

}  // namespace

void settle(Schedule& schedule) {
  const bool named =
      std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [](const RankOrder& rank) {
        return names_one(rank.order) || (rank.replay && names_one(*rank.replay));
      });
  if (!named) schedule.naming = Naming::Counted;
  for (RankOrder& rank : schedule.ranks) {
    forget_text(rank.order);
    if (rank.replay) forget_text(*rank.replay);
    for (Reset& reset : rank.resets) reset.span = {};
    settle_chunks(rank, schedule.topology);
    if (schedule.naming == Naming::Named) continue;
    count(rank.order, rank.chunks);
    if (rank.replay) count(*rank.replay, rank.chunks);
  }
  place_stages(schedule);
}

void erase_entries(std::vector<Entry>& order, const std::function<bool(const Entry&)>& goes) {
  std::vector<Entry> kept;
  kept.reserve(order.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && order[end].group == Group::Continues) ++end;
    const std::size_t first = kept.size();
    for (; begin < end; ++begin) {
      if (goes(order[begin])) continue;
      kept.push_back(order[begin]);
      kept.back().group = kept.size() == first + 1 ? Group::Opens : Group::Continues;
    }
    if (kept.size() == first + 1) kept.back().group = Group::Alone;
  }
  order = std::move(kept);
}

void erase_replayed(RankOrder& rank, const std::function<bool(const Entry&)>& goes) {
  std::uint32_t at = 0;
  std::uint32_t kept = 0;
  auto reset = rank.resets.begin();
  const auto move_resets = [&](std::uint32_t up_to) {
    for (; reset != rank.resets.end() && reset->behind <= up_to; ++reset) reset->behind = kept;
  };
  erase_entries(rank.replay ? *rank.replay : rank.order, [&](const Entry& entry) {
    move_resets(at++);
    if (goes(entry)) return true;
    ++kept;
    return false;
  });
  move_resets(at);
}

void erase_entries(RankOrder& rank, const std::function<bool(const Entry&)>& goes) {
  if (rank.replay) erase_entries(rank.order, goes);
  erase_replayed(rank, goes);
}

}  // namespace capo
