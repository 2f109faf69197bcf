#include "core/minimise/edits.h"

#include "core/minimise/settle.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

namespace capo {

namespace {

void for_each_entry(const RankOrder& rank, const std::function<void(const Entry&)>& visit) {
  std::for_each(rank.order.begin(), rank.order.end(), visit);
  if (rank.replay) std::for_each(rank.replay->begin(), rank.replay->end(), visit);
}

bool contains(std::span<const std::int32_t> sorted, std::int32_t value) {
  return std::binary_search(sorted.begin(), sorted.end(), value);
}

std::int32_t below(std::span<const std::int32_t> sorted, std::int32_t value) {
  return static_cast<std::int32_t>(std::lower_bound(sorted.begin(), sorted.end(), value) -
                                   sorted.begin());
}

// Returns by stage how many ranks hold it; a stage that no rank holds is missing.
std::map<std::int32_t, int> holders(const Schedule& schedule) {
  std::map<std::int32_t, int> held;
  for (const RankOrder& rank : schedule.ranks) {
    for (const std::int32_t stage : rank.stages) ++held[stage];
  }
  return held;
}

bool each_stage_once(const std::map<std::int32_t, int>& held) {
  std::int32_t next = 0;
  return std::all_of(held.begin(), held.end(),
                     [&](const auto& stage) { return stage.first == next++ && stage.second == 1; });
}

bool transfer_without_peer(const Entry& entry, const RankOrder& rank,
                           const std::map<std::int32_t, int>& held) {
  const bool up = entry.kind == Kind::SendForward || entry.kind == Kind::ReceiveBackward;
  const bool down = entry.kind == Kind::SendBackward || entry.kind == Kind::ReceiveForward;
  if (!up && !down) return false;
  const std::size_t chunk = entry.chunk.index();
  if (chunk >= rank.stages.size()) return false;
  const std::int32_t peer = rank.stages[chunk] + (up ? 1 : -1);
  return !held.contains(peer) ||
         std::find(rank.stages.begin(), rank.stages.end(), peer) != rank.stages.end();
}

// Spans have no meaning while a schedule is being cut, so the length marks transfers that lacked a
// peer before.
constexpr std::uint16_t kLackedPeer = 1;

void mark_without_peer(Schedule& schedule) {
  const auto held = holders(schedule);
  for (RankOrder& rank : schedule.ranks) {
    const auto mark = [&](std::vector<Entry>& order) {
      for (Entry& entry : order)
        entry.length = transfer_without_peer(entry, rank, held) ? kLackedPeer : 0;
    };
    mark(rank.order);
    if (rank.replay) mark(*rank.replay);
  }
}

void erase_without_peer(Schedule& schedule) {
  const auto held = holders(schedule);
  for (RankOrder& rank : schedule.ranks) {
    const auto goes = [&](const Entry& entry) {
      return entry.length != kLackedPeer && transfer_without_peer(entry, rank, held);
    };
    erase_entries(rank, goes);
  }
}

// Renumbers the stages of a Custom topology, so that one that no rank holds any longer leaves no
// gap.
void close_gaps(Schedule& schedule, const std::map<std::int32_t, int>& before) {
  const auto held = holders(schedule);
  std::vector<std::int32_t> gone;
  for (const auto& [stage, ranks] : before) {
    if (!held.contains(stage)) gone.push_back(stage);
  }
  for (RankOrder& rank : schedule.ranks) {
    for (std::int32_t& stage : rank.stages) stage -= below(gone, stage);
  }
}

// Places the stages anew after chunks or ranks went, and deletes transfers that lost their peer.
std::optional<Schedule> restaged(Schedule schedule, const std::map<std::int32_t, int>& before) {
  if (schedule.topology == Topology::Independent) {
    settle(schedule);
    return schedule;
  }
  if (schedule.topology == Topology::Custom) close_gaps(schedule, before);
  place_stages(schedule);
  const auto after = holders(schedule);
  if (each_stage_once(before) && !each_stage_once(after)) return std::nullopt;
  if (schedule.stages) {
    *schedule.stages -=
        static_cast<std::int32_t>(before.size()) - static_cast<std::int32_t>(after.size());
    if (*schedule.stages < 1) schedule.stages.reset();
  }
  erase_without_peer(schedule);
  settle(schedule);
  return schedule;
}

template <typename Value>
void erase_chunks(std::vector<Value>& of_chunk, std::span<const std::int32_t> gone) {
  std::int32_t chunk = 0;
  std::erase_if(of_chunk, [&](const Value&) { return contains(gone, ++chunk); });
}

void erase_chunks(RankOrder& rank, std::span<const std::int32_t> gone) {
  const auto goes = [&](const Entry& entry) {
    return entry.kind != Kind::Idle && contains(gone, entry.chunk);
  };
  erase_entries(rank, goes);
  change_entries(rank, [&](Entry& entry) { entry.chunk -= below(gone, entry.chunk); });
  std::erase_if(rank.resets, [&](const Reset& reset) { return contains(gone, reset.chunk); });
  for (Reset& reset : rank.resets) reset.chunk -= below(gone, reset.chunk);
  if (rank.layers.form == Layers::Form::List) erase_chunks(rank.layers.values, gone);
  if (rank.delay) erase_chunks(*rank.delay, gone);
  erase_chunks(rank.stages, gone);
  rank.chunks -= below(gone, rank.chunks + 1);
}

void make_whole(RankOrder& rank) {
  const auto goes = [](const Entry& entry) { return entry.kind == Kind::BackwardWeight; };
  erase_entries(rank, goes);
  change_entries(rank, [](Entry& entry) {
    if (entry.kind == Kind::BackwardInput) entry.kind = Kind::Backward;
  });
  if (rank.delay) std::fill(rank.delay->begin(), rank.delay->end(), Delay::Never);
}

void erase_microbatches(RankOrder& rank, std::span<const std::int32_t> gone) {
  const auto goes = [&](const auto& of) {
    return of.microbatch != kNoMicrobatch && contains(gone, of.microbatch);
  };
  const auto renumber = [&](auto& of) {
    if (of.microbatch != kNoMicrobatch) of.microbatch -= below(gone, of.microbatch);
  };
  erase_entries(rank, goes);
  change_entries(rank, renumber);
  std::erase_if(rank.resets, goes);
  std::for_each(rank.resets.begin(), rank.resets.end(), renumber);
}

void erase_positions(RankOrder& rank, From from, std::size_t begin, std::size_t end) {
  const auto goes = [begin, end, at = std::size_t{0}](const Entry&) mutable {
    const bool within = at >= begin && at < end;
    ++at;
    return within;
  };
  const bool replays = from == From::Replay || !rank.replay;
  replays ? erase_replayed(rank, goes) : erase_entries(rank.order, goes);
}

}  // namespace

std::vector<std::int32_t> microbatches_in(const Schedule& schedule) {
  std::vector<std::int32_t> found;
  for (const RankOrder& rank : schedule.ranks) {
    for_each_entry(rank, [&](const Entry& entry) {
      if (entry.microbatch != kNoMicrobatch) found.push_back(entry.microbatch);
    });
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<HeldChunk> chunks_in(const Schedule& schedule) {
  std::vector<HeldChunk> found;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const RankOrder& rank = schedule.ranks[r];
    std::set<std::int32_t> unknown;
    for_each_entry(rank, [&](const Entry& entry) {
      if (entry.chunk > rank.chunks) unknown.insert(entry.chunk);
    });
    const auto id = static_cast<std::int32_t>(r);
    for (std::int32_t chunk = 1; chunk <= rank.chunks; ++chunk) found.push_back({id, chunk});
    for (const std::int32_t chunk : unknown) found.push_back({id, chunk});
  }
  return found;
}

std::vector<std::int32_t> layers_in(const Schedule& schedule) {
  std::vector<std::int32_t> found;
  for (const HeldChunk& held : chunks_in(schedule)) found.push_back(held.chunk);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

Schedule without_microbatches(Schedule schedule, std::span<const std::int32_t> gone) {
  for (RankOrder& rank : schedule.ranks) erase_microbatches(rank, gone);
  if (schedule.microbatches) {
    *schedule.microbatches =
        std::max(1, *schedule.microbatches - below(gone, *schedule.microbatches));
  }
  settle(schedule);
  return schedule;
}

std::optional<Schedule> without_chunks(const Schedule& schedule, std::span<const HeldChunk> gone) {
  Schedule out = schedule;
  mark_without_peer(out);
  for (auto of_rank = gone.begin(); of_rank != gone.end();) {
    std::vector<std::int32_t> chunks;
    const std::int32_t rank = of_rank->rank;
    for (; of_rank != gone.end() && of_rank->rank == rank; ++of_rank) {
      chunks.push_back(of_rank->chunk);
    }
    erase_chunks(out.ranks[RankId(rank).index()], chunks);
  }
  return restaged(std::move(out), holders(schedule));
}

std::optional<Schedule> without_layers(const Schedule& schedule,
                                       std::span<const std::int32_t> gone) {
  std::vector<HeldChunk> held = chunks_in(schedule);
  std::erase_if(held, [&](const HeldChunk& one) { return !contains(gone, one.chunk); });
  return without_chunks(schedule, held);
}

std::optional<Schedule> without_ranks(const Schedule& schedule, std::size_t begin,
                                      std::size_t end) {
  if (end - begin >= schedule.ranks.size()) return std::nullopt;
  Schedule out = schedule;
  mark_without_peer(out);
  out.ranks.erase(out.ranks.begin() + static_cast<std::ptrdiff_t>(begin),
                  out.ranks.begin() + static_cast<std::ptrdiff_t>(end));
  return restaged(std::move(out), holders(schedule));
}

Schedule without_weights(Schedule schedule, std::size_t begin, std::size_t end) {
  for (std::size_t r = begin; r < end; ++r) make_whole(schedule.ranks[r]);
  settle(schedule);
  return schedule;
}

Schedule without_entries(Schedule schedule, std::size_t rank, From from, std::size_t begin,
                         std::size_t end) {
  RankOrder& of = schedule.ranks[rank];
  const std::vector<Entry>& order = from == From::Replay ? *of.replay : of.order;
  if (from == From::Both && of.replay) {
    std::map<Action, int> gone;
    for (std::size_t at = begin; at < end; ++at) ++gone[order[at].action()];
    erase_replayed(of, [&](const Entry& entry) {
      const auto found = gone.find(entry.action());
      return found != gone.end() && found->second-- > 0;
    });
  }
  erase_positions(of, from, begin, end);
  settle(schedule);
  return schedule;
}

Schedule without_entries(Schedule schedule, const std::function<bool(const Entry&)>& goes) {
  for (RankOrder& rank : schedule.ranks) erase_entries(rank, goes);
  settle(schedule);
  return schedule;
}

std::size_t resets_in(const Schedule& schedule) {
  std::size_t resets = 0;
  for (const RankOrder& rank : schedule.ranks) resets += rank.resets.size();
  return resets;
}

Schedule without_resets(Schedule schedule, std::size_t begin, std::size_t end) {
  std::size_t at = 0;
  for (RankOrder& rank : schedule.ranks) {
    std::erase_if(rank.resets, [&](const Reset&) {
      const bool goes = at >= begin && at < end;
      ++at;
      return goes;
    });
  }
  settle(schedule);
  return schedule;
}

std::optional<Schedule> with_only(const Schedule& schedule, const Action& one,
                                  const Action& other) {
  const auto is = [](const auto& of, const Action& cell) {
    return of.chunk == cell.chunk && of.microbatch == cell.microbatch;
  };
  Schedule out = schedule;
  RankOrder& rank = out.ranks.front();
  const auto renumber = [&](auto& of) {
    const bool second = one.chunk == other.chunk && is(of, other);
    if (of.microbatch != kNoMicrobatch) of.microbatch = second ? 1 : 0;
  };
  erase_entries(rank, [&](const Entry& entry) {
    return entry.kind != Kind::Idle && !is(entry, one) && !is(entry, other);
  });
  change_entries(rank, renumber);
  std::erase_if(rank.resets, [&](const Reset& reset) {
    return reset.microbatch != kNoMicrobatch && !is(reset, one) && !is(reset, other);
  });
  std::for_each(rank.resets.begin(), rank.resets.end(), renumber);
  if (out.microbatches) out.microbatches = one.chunk == other.chunk ? 2 : 1;
  std::vector<HeldChunk> gone = chunks_in(schedule);
  std::erase_if(gone, [&](const HeldChunk& held) {
    return held.chunk == one.chunk || held.chunk == other.chunk;
  });
  return without_chunks(out, gone);
}

bool keeps_delays(const Schedule& before, const Schedule& after) {
  for (std::size_t r = 0; r < after.ranks.size(); ++r) {
    const std::vector<Delay> was = resolved_delay(before.ranks[r]);
    const std::vector<Delay> is = resolved_delay(after.ranks[r]);
    for (const Entry& entry : after.ranks[r].order) {
      const std::size_t chunk = entry.chunk.index();
      if (!is_compute(entry.kind) || chunk >= is.size() || chunk >= was.size()) continue;
      if (was[chunk] != is[chunk]) return false;
    }
  }
  return true;
}

}  // namespace capo
