#include "core/order/schedule.h"

#include "core/base/index.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace capo {

namespace {

constexpr std::array<std::pair<Topology, std::string_view>, 6> kTopologies{{
    {Topology::Independent, "independent"},
    {Topology::Chain, "chain"},
    {Topology::Loop, "loop"},
    {Topology::V, "v"},
    {Topology::Bidirectional, "bidirectional"},
    {Topology::Custom, "custom"},
}};

// The names stand in the order of the enumerators.
constexpr std::array<std::string_view, 3> kMegatronCalls{"batch", "overlap", "flush"};

}  // namespace

std::string_view name_of(Topology topology) {
  return kTopologies[as_index(topology)].second;
}

std::optional<Topology> topology_named(std::string_view word) {
  for (const auto& [topology, name] : kTopologies) {
    if (name == word) return topology;
  }
  return std::nullopt;
}

std::string_view name_of(MegatronCalls calls) {
  return kMegatronCalls[as_index(calls)];
}

std::optional<MegatronCalls> megatron_calls_named(std::string_view word) {
  const auto known = std::find(kMegatronCalls.begin(), kMegatronCalls.end(), word);
  if (known == kMegatronCalls.end()) return std::nullopt;
  return static_cast<MegatronCalls>(known - kMegatronCalls.begin());
}

std::vector<Delay> resolved_delay(const RankOrder& rank) {
  const auto chunks = as_index(std::max(rank.chunks, 0));
  if (rank.delay) {
    std::vector<Delay> delay = *rank.delay;
    delay.resize(chunks, Delay::Never);
    return delay;
  }
  std::vector<Delay> delay(chunks, Delay::Never);
  for (const Entry& entry : rank.order) {
    if (entry.chunk < 1 || entry.chunk > rank.chunks) continue;
    Delay& of_chunk = delay[entry.chunk.index()];
    if (entry.kind == Kind::BackwardInput) of_chunk = Delay::Mixed;
    if (entry.kind == Kind::BackwardWeight && of_chunk == Delay::Never) of_chunk = Delay::Always;
  }
  return delay;
}

void number_microbatches(std::vector<Entry>& order, std::int32_t chunks) {
  constexpr std::size_t kKinds = as_index(Kind::WaitSendBackward) + 1;
  std::vector<std::array<std::int32_t, kKinds>> next(as_index(std::max(chunks, 0)));
  for (Entry& entry : order) {
    if (!has_microbatch(entry.kind) || entry.chunk < 1 || entry.chunk > chunks) continue;
    entry.microbatch = next[entry.chunk.index()][as_index(entry.kind)]++;
  }
}

namespace {

template <typename Is>
bool any_entry(const Schedule& schedule, Is is) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [&](const RankOrder& rank) {
    return std::any_of(rank.order.begin(), rank.order.end(), is);
  });
}

}  // namespace

Kinds::Kinds(const Schedule& schedule) {
  for (const RankOrder& rank : schedule.ranks) {
    for (const Entry& entry : rank.order) bits_ |= 1U << as_index(entry.kind);
  }
}

bool has_exchanges(const Schedule& schedule) {
  return any_entry(schedule, [](const Entry& entry) { return is_exchange(entry.kind); });
}

bool has_composites(const Schedule& schedule) {
  return any_entry(schedule, [](const Entry& entry) { return entry.group == Group::Continues; });
}

namespace {

// Readers refuse stages above their limit. Until then a number that is too large must not wrap
// around.
std::int32_t saturated(std::int64_t stage) {
  return static_cast<std::int32_t>(
      std::min<std::int64_t>(stage, std::numeric_limits<std::int32_t>::max()));
}

}  // namespace

std::int32_t stages_of_first_pipeline(const Schedule& schedule) {
  if (schedule.topology == Topology::Custom && schedule.replicas > 1) {
    std::size_t stages = 0;
    for (const RankOrder& rank : schedule.ranks) stages += rank.stages.size();
    return saturated(static_cast<std::int64_t>(stages) / schedule.replicas);
  }
  if (schedule.topology != Topology::Bidirectional) return std::numeric_limits<std::int32_t>::max();
  std::int64_t chunks = 0;
  for (const RankOrder& rank : schedule.ranks) {
    chunks = std::max<std::int64_t>(chunks, rank.chunks);
  }
  const auto ranks = static_cast<std::int64_t>(schedule.ranks.size()) / schedule.replicas;
  return saturated((chunks + 1) / 2 * ranks);
}

std::vector<std::vector<std::int32_t>> layer_counts(const Schedule& schedule) {
  std::vector<std::vector<std::int32_t>> layers;
  for (const RankOrder& rank : schedule.ranks) {
    auto& of_rank = layers.emplace_back();
    for (std::int32_t chunk = 0; chunk < rank.chunks; ++chunk) {
      const auto& stated = rank.layers.values;
      const std::size_t at = rank.layers.form == Layers::Form::Count ? 0 : as_index(chunk);
      of_rank.push_back(at < stated.size() ? static_cast<std::int32_t>(stated[at]) : 1);
    }
  }
  return layers;
}

void place_stages(Schedule& schedule) {
  if (schedule.topology == Topology::Custom || schedule.topology == Topology::Independent) return;
  const auto ranks = static_cast<std::int64_t>(schedule.ranks.size());
  const std::int64_t first_pipeline = stages_of_first_pipeline(schedule);
  std::int64_t next = 0;  // the next stage of a chain
  for (std::int64_t r = 0; r < ranks; ++r) {
    RankOrder& rank = schedule.ranks[as_index(r)];
    rank.stages.clear();
    for (std::int64_t c = 0; c < rank.chunks; ++c) {
      if (schedule.topology == Topology::Chain) {
        rank.stages.push_back(saturated(next++));
      } else if (schedule.topology == Topology::V && c % 2 == 1) {
        rank.stages.push_back(saturated((c + 1) * ranks - 1 - r));
      } else if (schedule.topology == Topology::Bidirectional) {
        rank.stages.push_back(saturated(c % 2 == 0 ? c / 2 * ranks + r
                                                   : first_pipeline + (c / 2 + 1) * ranks - 1 - r));
      } else {
        rank.stages.push_back(saturated(c * ranks + r));
      }
    }
  }
}

namespace {

bool same_entries(const std::vector<Entry>& a, const std::vector<Entry>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Entry& x, const Entry& y) {
    return x.action() == y.action() && x.group == y.group;
  });
}

bool same_resets(const std::vector<Reset>& a, const std::vector<Reset>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Reset& x, const Reset& y) {
    return x.chunk == y.chunk && x.microbatch == y.microbatch && x.behind == y.behind;
  });
}

bool same_rank(const RankOrder& a, const RankOrder& b) {
  if (a.replay.has_value() != b.replay.has_value()) return false;
  if (a.replay && !same_entries(*a.replay, *b.replay)) return false;
  return same_entries(a.order, b.order) && a.chunks == b.chunks && a.layers == b.layers &&
         resolved_delay(a) == resolved_delay(b) && a.stages == b.stages &&
         a.model_chunks == b.model_chunks && same_resets(a.resets, b.resets);
}

}  // namespace

bool same_meaning(const Schedule& a, const Schedule& b) {
  return a.naming == b.naming && a.topology == b.topology && a.microbatches == b.microbatches &&
         a.stages == b.stages && a.p2p == b.p2p && a.replicas == b.replicas &&
         std::equal(a.ranks.begin(), a.ranks.end(), b.ranks.begin(), b.ranks.end(), same_rank);
}

bool has_resets(const Schedule& schedule) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(),
                     [](const RankOrder& rank) { return !rank.resets.empty(); });
}

bool ranks_communicate(const Schedule& schedule) {
  return schedule.topology != Topology::Independent && schedule.ranks.size() > 1;
}

}  // namespace capo
