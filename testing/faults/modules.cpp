#include "testing/faults/modules.h"

#include <algorithm>

namespace capo::testing::faults {

namespace {

bool fits(const ModuleSlip& slip, Delay delay) {
  switch (slip.of) {
    case Delayed::Yes:
      return delay == Delay::Always;
    case Delayed::No:
      return delay == Delay::Never;
    case Delayed::Either:
      return delay != Delay::Mixed;
  }
  return false;
}

struct ChunkPlace {
  std::size_t rank;
  std::size_t chunk;  // from 0
};

std::vector<ChunkPlace> chunks_that_fit(const Schedule& schedule, const ModuleSlip& slip) {
  std::vector<ChunkPlace> found;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const std::vector<Delay>& delay = *schedule.ranks[r].delay;
    for (std::size_t c = 0; c < delay.size(); ++c) {
      if (fits(slip, delay[c])) found.push_back({r, c});
    }
  }
  return found;
}

}  // namespace

std::optional<Broken<Declared>> with_module(const Declared& sound, std::size_t choice,
                                            const ModuleSlip& slip,
                                            const std::function<void(Module&)>& spoil) {
  const auto place = chosen(chunks_that_fit(sound.schedule, slip), choice);
  if (!place || *sound.schedule.microbatches < slip.microbatches) return std::nullopt;
  const RankOrder& rank = sound.schedule.ranks[place->rank];
  Declared broken = sound;
  ModuleTable& table = broken.options.modules;
  Module module{.name = "faulty", .kind = ModuleKind::Linear};
  module.flags.delay_wgrad = (*rank.delay)[place->chunk] == Delay::Always;
  module.flags.fuse_wgrad_accumulation = true;
  spoil(module);
  table.layers[place->rank][place->chunk] = {static_cast<std::int32_t>(table.list.size())};
  table.list.push_back(module);

  const auto chunk = static_cast<std::int32_t>(place->chunk) + 1;
  const auto shown = std::find_if(rank.order.begin(), rank.order.end(), [&](const Entry& entry) {
    return entry.kind == slip.shown_at && entry.chunk == chunk;
  });
  const auto at = static_cast<std::size_t>(shown - rank.order.begin());
  return {{broken, slip.rule, fault_place(broken.schedule, {.rank = place->rank, .at = at})}};
}

std::vector<EntryPlace> reductions(const Schedule& schedule) {
  return entries_that(schedule, [](const Entry& entry, const RankOrder&) {
    return entry.kind == Kind::ReduceGradient;
  });
}

EntryPlace last_gradient(const Schedule& schedule, std::size_t rank, std::int32_t chunk) {
  const RankOrder& holder = schedule.ranks[rank];
  const bool halves = (*holder.delay)[static_cast<std::size_t>(chunk) - 1] == Delay::Always;
  EntryPlace last{.rank = rank};
  for (std::size_t at = 0; at < holder.order.size(); ++at) {
    const Entry& entry = holder.order[at];
    const bool whole = entry.kind == Kind::Backward && !halves;
    if (entry.chunk == chunk && (whole || entry.kind == Kind::BackwardWeight)) last.at = at;
  }
  return last;
}

}  // namespace capo::testing::faults
