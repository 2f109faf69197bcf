#include "core/minimise/edits.h"

#include "core/base/index.h"
#include "core/minimise/settle.h"
#include "core/minimise/size.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

namespace capo {

namespace {

// Pairs are exchanged among at most so many chunks or microbatches: only small orders are to read
// well, and the number of pairs grows with the square.
constexpr std::int32_t kMostToExchange = 16;

// Changes the numbers of entries and resets.
template <typename Change>
void change_all(RankOrder& rank, const Change& change) {
  change_entries(rank, change);
  std::for_each(rank.resets.begin(), rank.resets.end(), change);
}

template <typename Id>
void exchange(Id& id, Id a, Id b) {
  id = id == a ? b : id == b ? a : id;
}

template <typename Value>
void exchange_places(std::vector<Value>& of_chunk, ChunkId a, ChunkId b) {
  if (std::max(a, b).index() >= of_chunk.size()) return;
  const Value first = of_chunk[a.index()];
  of_chunk[a.index()] = of_chunk[b.index()];
  of_chunk[b.index()] = first;
}

Schedule with_chunks_exchanged(Schedule schedule, std::size_t r, ChunkId a, ChunkId b) {
  RankOrder& rank = schedule.ranks[r];
  change_all(rank, [&](auto& of) { exchange(of.chunk, a, b); });
  if (rank.layers.form == Layers::Form::List) exchange_places(rank.layers.values, a, b);
  if (rank.delay) exchange_places(*rank.delay, a, b);
  settle(schedule);
  return schedule;
}

Schedule with_microbatches_exchanged(Schedule schedule, MicrobatchId a, MicrobatchId b) {
  for (RankOrder& rank : schedule.ranks) {
    change_all(rank, [&](auto& of) { exchange(of.microbatch, a, b); });
  }
  settle(schedule);
  return schedule;
}

Schedule with_microbatches_from_zero(Schedule schedule) {
  const std::vector<std::int32_t> used = microbatches_in(schedule);
  for (RankOrder& rank : schedule.ranks) {
    change_all(rank, [&](auto& of) {
      if (of.microbatch == kNoMicrobatch) return;
      of.microbatch = static_cast<std::int32_t>(
          std::lower_bound(used.begin(), used.end(), of.microbatch) - used.begin());
    });
  }
  settle(schedule);
  return schedule;
}

// Gives the chunks that a rank names and does not have the first numbers behind those that it has.
Schedule with_unknown_chunks_near(Schedule schedule) {
  for (RankOrder& rank : schedule.ranks) {
    std::vector<std::int32_t> unknown;
    change_entries(rank, [&](Entry& entry) {
      if (entry.chunk > rank.chunks) unknown.push_back(entry.chunk);
    });
    std::sort(unknown.begin(), unknown.end());
    unknown.erase(std::unique(unknown.begin(), unknown.end()), unknown.end());
    change_entries(rank, [&](Entry& entry) {
      if (entry.chunk <= rank.chunks) return;
      const auto place = std::lower_bound(unknown.begin(), unknown.end(), entry.chunk);
      entry.chunk = rank.chunks + 1 + static_cast<std::int32_t>(place - unknown.begin());
    });
  }
  settle(schedule);
  return schedule;
}

Schedule without_composites(Schedule schedule) {
  for (RankOrder& rank : schedule.ranks) {
    change_entries(rank, [](Entry& entry) { entry.group = Group::Alone; });
  }
  settle(schedule);
  return schedule;
}

// Leaves the number of chunks of every rank to its order, unless a list of layers states it.
void infer_chunks(Schedule& schedule) {
  for (RankOrder& rank : schedule.ranks) {
    if (rank.layers.form != Layers::Form::List) rank.chunks_declared = false;
  }
}

bool same_chunks_and_stages(const Schedule& a, const Schedule& b) {
  return std::equal(a.ranks.begin(), a.ranks.end(), b.ranks.begin(), b.ranks.end(),
                    [](const RankOrder& x, const RankOrder& y) {
                      return x.chunks == y.chunks && x.stages == y.stages;
                    });
}

std::vector<Schedule> with_a_named_topology(const Schedule& schedule) {
  std::vector<Schedule> out;
  if (schedule.topology != Topology::Custom) return out;
  for (const Topology topology : {Topology::Chain, Topology::Loop, Topology::V}) {
    Schedule named = schedule;
    named.topology = topology;
    infer_chunks(named);
    settle(named);
    if (same_chunks_and_stages(schedule, named)) out.push_back(std::move(named));
  }
  return out;
}

std::vector<Schedule> with_fewer_declared_of_rank(const Schedule& schedule, std::size_t r) {
  std::vector<Schedule> out;
  const RankOrder& rank = schedule.ranks[r];
  const auto add = [&](const std::function<void(RankOrder&)>& change) {
    Schedule plainer = schedule;
    change(plainer.ranks[r]);
    settle(plainer);
    if (same_chunks_and_stages(schedule, plainer) &&
        resolved_delay(plainer.ranks[r]) == resolved_delay(rank)) {
      out.push_back(std::move(plainer));
    }
  };
  if (rank.layers.form != Layers::Form::Unstated) {
    add([](RankOrder& of) {
      of.layers = {};
      of.chunks_declared = false;
    });
    add([](RankOrder& of) { of.layers = {}; });
  }
  if (rank.chunks_declared) add([](RankOrder& of) { of.chunks_declared = false; });
  if (rank.delay) add([](RankOrder& of) { of.delay.reset(); });
  return out;
}

}  // namespace

std::vector<Schedule> renamings(const Schedule& schedule) {
  std::vector<Schedule> out{without_composites(schedule), with_unknown_chunks_near(schedule)};
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const std::int32_t chunks = schedule.ranks[r].chunks;
    if (schedule.topology != Topology::Independent || chunks > kMostToExchange) continue;
    for (std::int32_t chunk = 2; chunk <= chunks; ++chunk) {
      for (std::int32_t other = 1; other < chunk; ++other)
        out.push_back(with_chunks_exchanged(schedule, r, other, chunk));
    }
  }
  if (schedule.naming != Naming::Named) return out;
  out.push_back(with_microbatches_from_zero(schedule));
  const std::vector<std::int32_t> used = microbatches_in(schedule);
  if (used.size() > as_index(kMostToExchange)) return out;
  for (std::size_t m = 1; m < used.size(); ++m) {
    for (std::size_t other = 0; other < m; ++other)
      out.push_back(with_microbatches_exchanged(schedule, used[other], used[m]));
  }
  return out;
}

std::vector<Schedule> with_less_declared(const Schedule& schedule) {
  std::vector<Schedule> out;
  const std::vector<std::int32_t> used = microbatches_in(schedule);
  if (schedule.microbatches) {
    out.push_back(schedule);
    out.back().microbatches.reset();
    out.push_back(schedule);
    out.back().microbatches = used.empty() ? 1 : used.back() + 1;
  }
  if (schedule.stages) {
    out.push_back(schedule);
    out.back().stages.reset();
  }
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    for (Schedule& plainer : with_fewer_declared_of_rank(schedule, r)) {
      out.push_back(std::move(plainer));
    }
  }
  for (Schedule& named : with_a_named_topology(schedule)) out.push_back(std::move(named));
  return out;
}

std::optional<Schedule> with_neighbours_swapped(const Schedule& schedule, std::size_t rank,
                                                bool replay, std::size_t at) {
  const RankOrder& of = schedule.ranks[rank];
  const std::vector<Entry>& order = replay ? *of.replay : of.order;
  const Entry& first = order[at];
  const Entry& second = order[at + 1];
  if (first.group != Group::Alone || second.group != Group::Alone) return std::nullopt;
  if (!(canonical_place(second, of, schedule.topology) <
        canonical_place(first, of, schedule.topology))) {
    return std::nullopt;
  }
  Schedule swapped = schedule;
  RankOrder& changed = swapped.ranks[rank];
  std::vector<Entry>& entries = replay ? *changed.replay : changed.order;
  std::swap(entries[at], entries[at + 1]);
  settle(swapped);
  return swapped;
}

}  // namespace capo
