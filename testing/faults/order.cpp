// Faults of an order of named microbatches: an action is lost, run twice, misnamed, misplaced, or
// its stage is.
//
//   gpu0: F0 F1 B0 B1   ->   gpu0: B0 F1 F0 B1      backward-before-forward: D01 at B0
//
// Transfers are communication.cpp's subject. The table at the end names the faults.
// Tested by fault_test.cpp and tests/properties/faults_test.cpp.

#include "core/base/index.h"
#include "testing/faults/faults.h"

#include "core/graph/stage_map.h"
#include "testing/edits/entries.h"
#include "testing/edits/transfers.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

namespace capo::testing {

namespace {

// An action of a microbatch is missing; the finding is beside the actions that the microbatch still
// has. If the action was the only forward of its rank, the finding is that the rank has none.
std::optional<Broken<Schedule>> drop_action(const Schedule& sound, std::size_t choice) {
  const Position place = chosen(compute_entries(sound), choice).value();
  Schedule schedule = sound;
  RankOrder& rank = schedule.ranks[place.rank];
  const Entry gone = rank.order[place.at];
  if (gone.group == Group::Opens && place.at + 1 < rank.order.size() &&
      rank.order[place.at + 1].group == Group::Continues) {
    rank.order[place.at + 1].group = Group::Opens;
  }
  rank.order.erase(rank.order.begin() + static_cast<std::ptrdiff_t>(place.at));
  const bool forward = std::any_of(rank.order.begin(), rank.order.end(),
                                   [](const Entry& entry) { return entry.kind == Kind::Forward; });
  if (!forward) return {{schedule, "S06", Place{.rank = static_cast<std::int32_t>(place.rank)}}};
  const std::size_t last = lack_of(rank, gone.action()).value();
  return {{schedule, "S21", fault_place(schedule, {.rank = place.rank, .at = last})}};
}

// A chunk runs nothing of the last microbatch, which others run. No entry is left to point at.
std::optional<Broken<Schedule>> drop_microbatch(const Schedule& sound, std::size_t choice) {
  const std::int32_t last = sound.microbatches.value_or(0) - 1;
  if (last < 1) return std::nullopt;
  const std::size_t rank = choice % sound.ranks.size();
  Schedule schedule = sound;
  RankOrder& order = schedule.ranks[rank];
  for (Entry& entry : order.order) entry.group = Group::Alone;
  const auto chunk = static_cast<std::int32_t>(choice) % order.chunks + 1;
  std::erase_if(order.order, [&](const Entry& entry) {
    return entry.chunk == chunk && entry.microbatch == last;
  });
  return {{schedule, "S21", std::nullopt}};
}

// An action runs a second time, at the end of its order. Its gradient would be added twice, and
// every check that PyTorch makes ahead of time passes. The witness begins with the first run.
std::optional<Broken<Schedule>> double_action(const Schedule& sound, std::size_t choice) {
  const Position place = chosen(compute_entries(sound), choice).value();
  Schedule schedule = sound;
  auto& order = schedule.ranks[place.rank].order;
  Entry again = order[place.at];
  again.group = Group::Alone;
  order.push_back(again);
  return {{schedule, "S20", fault_place(schedule, place)}};
}

// An action names another microbatch than is meant, so that its own lacks it. The finding is beside
// the actions that the microbatch still has.
std::optional<Broken<Schedule>> other_microbatch(const Schedule& sound, std::size_t choice) {
  if (sound.microbatches.value_or(0) < 2) return std::nullopt;
  const Position place = chosen(compute_entries(sound), choice).value();
  Schedule schedule = sound;
  RankOrder& rank = schedule.ranks[place.rank];
  Entry& entry = rank.order[place.at];
  const Action meant = entry.action();
  entry.microbatch = (meant.microbatch + 1) % *sound.microbatches;
  const std::size_t last = lack_of(rank, meant).value();
  return {{schedule, "S21", fault_place(schedule, {.rank = place.rank, .at = last})}};
}

// An action names a microbatch that the step does not have.
std::optional<Broken<Schedule>> microbatch_beyond(const Schedule& sound, std::size_t choice) {
  const Position place = chosen(compute_entries(sound), choice).value();
  Schedule schedule = sound;
  schedule.ranks[place.rank].order[place.at].microbatch =
      sound.microbatches.value() + static_cast<std::int32_t>(choice / 7 % 3);
  return {{schedule, "S19", fault_place(schedule, place)}};
}

// A mixed chunk runs one microbatch backward both ways, whole and split; the second way is added at
// the end of the order. The witness begins with the first backward.
std::optional<Broken<Schedule>> whole_and_split(const Schedule& sound, std::size_t choice) {
  const auto places = entries_that(sound, [](const Entry& entry, const RankOrder& rank) {
    const bool backward = entry.kind == Kind::Backward || entry.kind == Kind::BackwardInput;
    return backward && (*rank.delay)[entry.chunk.index()] == Delay::Mixed;
  });
  const auto place = chosen(places, choice);
  if (!place) return std::nullopt;
  Schedule schedule = sound;
  auto& order = schedule.ranks[place->rank].order;
  Entry again = order[place->at];
  again.kind = again.kind == Kind::Backward ? Kind::BackwardInput : Kind::Backward;
  again.group = Group::Alone;
  order.push_back(again);
  return {{schedule, "S22", fault_place(schedule, *place)}};
}

// A backward and its forward have changed places.
std::optional<Broken<Schedule>> backward_before_forward(const Schedule& sound, std::size_t choice) {
  const auto backwards = entries_that(sound, [](const Entry& entry, const RankOrder&) {
    return entry.kind == Kind::Backward || entry.kind == Kind::BackwardInput;
  });
  const Position place = chosen(backwards, choice).value();
  Schedule schedule = sound;
  RankOrder& rank = schedule.ranks[place.rank];
  Entry& backward = rank.order[place.at];
  const std::size_t at =
      find(rank,
           {.kind = Kind::Forward, .chunk = backward.chunk, .microbatch = backward.microbatch})
          .value();
  std::swap(backward.kind, rank.order[at].kind);
  return {{schedule, "D01", fault_place(schedule, {.rank = place.rank, .at = at})}};
}

// A weight gradient and its backward have changed places.
std::optional<Broken<Schedule>> weight_before_backward(const Schedule& sound, std::size_t choice) {
  const auto place = chosen(
      entries_that(sound, [](const Entry& entry,
                             const RankOrder&) { return entry.kind == Kind::BackwardWeight; }),
      choice);
  if (!place) return std::nullopt;
  Schedule schedule = sound;
  RankOrder& rank = schedule.ranks[place->rank];
  Entry& weight = rank.order[place->at];
  Action wanted{.kind = Kind::Backward, .chunk = weight.chunk, .microbatch = weight.microbatch};
  auto at = find(rank, wanted);
  wanted.kind = Kind::BackwardInput;
  if (!at) at = find(rank, wanted);
  std::swap(weight.kind, rank.order[at.value()].kind);
  return {{schedule, "D02", fault_place(schedule, {.rank = place->rank, .at = *at})}};
}

// A chunk gives up its parameters right before its last computation.
std::optional<Broken<Schedule>> reshard_early(const Schedule& sound, std::size_t choice) {
  const Position some = chosen(compute_entries(sound), choice).value();
  const std::int32_t chunk = sound.ranks[some.rank].order[some.at].chunk;
  const std::vector<Position> all =
      entries_that(sound, [&](const Entry& entry, const RankOrder& rank) {
        return &rank == &sound.ranks[some.rank] && is_compute(entry.kind) && entry.chunk == chunk;
      });
  Schedule schedule = sound;
  Position last = all.back();
  put_before(schedule, last, {.chunk = chunk, .kind = Kind::Reshard});
  ++last.at;
  return {{schedule, "D05", fault_place(schedule, last)}};
}

// A forward dispatches its tokens before it has made them.
std::optional<Broken<Schedule>> exchange_early(const Schedule& sound, std::size_t choice) {
  const std::vector<Position> forwards = entries_that(
      sound,
      [](const Entry& entry, const RankOrder& /*rank*/) { return entry.kind == Kind::Forward; });
  Schedule schedule = sound;
  const Position forward = chosen(forwards, choice).value();
  Entry dispatch = sound.ranks[forward.rank].order[forward.at];
  dispatch.kind = Kind::DispatchForward;
  const Position place = put_before(schedule, forward, dispatch);
  return {{schedule, "D06", fault_place(schedule, place)}};
}

struct ChunkPlace {
  std::size_t rank;
  std::int32_t chunk;
};

std::ptrdiff_t runs(const Schedule& schedule, ChunkPlace place) {
  const auto& order = schedule.ranks[place.rank].order;
  return std::count_if(order.begin(), order.end(), [&](const Entry& entry) {
    return is_compute(entry.kind) && entry.chunk == place.chunk;
  });
}

// Two chunks are placed on one stage, so that its parameters would be there twice. The chunk that
// runs more entries is at home there, or the one on the lower rank if both run as many; the finding
// is at the first entry of the other one.
std::optional<Broken<Schedule>> stage_twice(const Schedule& sound, std::size_t choice) {
  if (sound.topology == Topology::Independent) return std::nullopt;
  Schedule schedule = sound;
  schedule.topology = Topology::Custom;
  std::vector<ChunkPlace> chunks;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    for (std::int32_t c = 1; c <= schedule.ranks[r].chunks; ++c)
      chunks.push_back({.rank = r, .chunk = c});
  }
  if (chunks.size() < 2) return std::nullopt;
  const auto stage_of = [&](ChunkPlace place) -> std::int32_t& {
    return schedule.ranks[place.rank].stages[as_index(place.chunk) - 1];
  };
  const std::size_t i = choice % (chunks.size() - 1);
  const std::size_t j = i + 1 + choice / 7 % (chunks.size() - 1 - i);
  stage_of(chunks[j]) = stage_of(chunks[i]);
  const ChunkPlace guest =
      runs(schedule, chunks[j]) > runs(schedule, chunks[i]) ? chunks[i] : chunks[j];
  const auto& order = schedule.ranks[guest.rank].order;
  const auto at = std::find_if(order.begin(), order.end(),
                               [&](const Entry& entry) { return entry.chunk == guest.chunk; });
  return {{schedule, "P01",
           fault_place(schedule, {.rank = guest.rank, .at = as_index(at - order.begin())})}};
}

// The chunk on the last stage is placed one further, so that no chunk is on the last stage. A
// missing stage has no entry to point at.
std::optional<Broken<Schedule>> stage_nowhere(const Schedule& sound, std::size_t /*choice*/) {
  if (sound.topology == Topology::Independent) return std::nullopt;
  Schedule schedule = sound;
  schedule.topology = Topology::Custom;
  std::int32_t* last = nullptr;
  for (RankOrder& rank : schedule.ranks) {
    for (std::int32_t& stage : rank.stages) {
      if (last == nullptr || stage > *last) last = &stage;
    }
  }
  ++*last;
  return {{schedule, "P02", std::nullopt}};
}

// One stage fewer is declared than there are; the finding is at the first entry of the last stage.
std::optional<Broken<Schedule>> stage_unknown(const Schedule& sound, std::size_t /*choice*/) {
  if (sound.topology == Topology::Independent) return std::nullopt;
  Schedule schedule = sound;
  std::int32_t last = 0;
  for (const RankOrder& rank : schedule.ranks) {
    for (const std::int32_t stage : rank.stages) last = std::max(last, stage);
  }
  if (last == 0) return std::nullopt;
  schedule.stages = last;
  const auto places = entries_that(schedule, [last](const Entry& entry, const RankOrder& rank) {
    return is_compute(entry.kind) && rank.stages[entry.chunk.index()] == last;
  });
  return {{schedule, "P03", fault_place(schedule, places.front())}};
}

bool runs_forward(const Entry& entry) {
  return entry.kind == Kind::Forward;
}

bool runs_backward(const Entry& entry) {
  return entry.kind == Kind::Backward || entry.kind == Kind::BackwardInput;
}

// One entry of a kind, by choice, comes before the entry of that kind whose output it reads. The
// stage that makes the output is `source` of the entry's own.
std::optional<Broken<Schedule>> ahead_of_its_source(const Schedule& sound, std::size_t choice,
                                                    bool (*of_kind)(const Entry&),
                                                    StageId (StageMap::*source)(StageId) const) {
  const StageMap map(sound);
  const auto source_of = [&](std::size_t rank, const Entry& entry) {
    return (map.*source)(map.stage_of(static_cast<std::int32_t>(rank), entry.chunk));
  };
  std::vector<Position> readers;
  for (const Position& place : compute_entries(sound)) {
    const Entry& entry = sound.ranks[place.rank].order[place.at];
    const StageId stage = map.stage_of(static_cast<std::int32_t>(place.rank), entry.chunk);
    const StageId from = source_of(place.rank, entry);
    if (of_kind(entry) && from != kNoStage && map.same_rank(stage, from)) readers.push_back(place);
  }
  const auto reader = chosen(readers, choice);
  if (!reader) return std::nullopt;
  Schedule schedule = sound;
  const Entry moved = take_out(schedule, *reader);
  const std::int32_t chunk = map.home(source_of(reader->rank, moved)).chunk;
  const std::vector<Entry>& order = schedule.ranks[reader->rank].order;
  const auto made = std::find_if(order.begin(), order.end(), [&](const Entry& entry) {
    return of_kind(entry) && entry.chunk == chunk && entry.microbatch == moved.microbatch;
  });
  const auto at = as_index(made - order.begin());
  const Position place = put_before(schedule, {.rank = reader->rank, .at = at}, moved);
  return {{schedule, "D03", fault_place(schedule, place)}};
}

// A forward comes before the forward of the previous stage on the rank that holds both stages.
// backward_order does the same with a backward and the backward of the next stage.
std::optional<Broken<Schedule>> stage_order(const Schedule& sound, std::size_t choice) {
  return ahead_of_its_source(sound, choice, runs_forward, &StageMap::before);
}

std::optional<Broken<Schedule>> backward_order(const Schedule& sound, std::size_t choice) {
  return ahead_of_its_source(sound, choice, runs_backward, &StageMap::after);
}

// A forward comes before another forward of its rank whose output it needs by way of another rank.
// The finding is a cycle that goes through it.
std::optional<Broken<Schedule>> dependency_cycle(const Schedule& sound, std::size_t choice) {
  const StageMap map(sound);
  // The stage before the previous one, if the rank holds it and not the one between.
  const auto around = [&](StageId stage) {
    const StageId between = map.before(stage);
    const StageId first = between == kNoStage ? kNoStage : map.before(between);
    const bool returns =
        first != kNoStage && map.same_rank(first, stage) && !map.same_rank(between, stage);
    return returns ? first : kNoStage;
  };
  const auto stage_of = [&](Position place, const Entry& entry) {
    return map.stage_of(static_cast<std::int32_t>(place.rank), entry.chunk);
  };
  std::vector<Position> found;
  for (const Position& place : compute_entries(sound)) {
    const Entry& entry = sound.ranks[place.rank].order[place.at];
    if (entry.kind == Kind::Forward && around(stage_of(place, entry)) != kNoStage)
      found.push_back(place);
  }
  const auto last = chosen(found, choice);
  if (!last) return std::nullopt;
  Schedule schedule = sound;
  const Entry moved = take_out(schedule, *last);
  const Action needed{.kind = Kind::Forward,
                      .chunk = map.home(around(stage_of(*last, moved))).chunk,
                      .microbatch = moved.microbatch};
  const Position place = put_before(
      schedule, {.rank = last->rank, .at = find(schedule.ranks[last->rank], needed).value()},
      moved);
  return {{schedule, "D04", fault_place(schedule, place)}};
}

// A place behind an entry where something can stand that is none: behind its composite.
std::uint32_t behind_entry(const std::vector<Entry>& order, std::size_t at) {
  ++at;
  while (at < order.size() && order[at].group == Group::Continues) ++at;
  return static_cast<std::uint32_t>(at);
}

// The computations of the same chunk and microbatch, in their order.
std::vector<std::size_t> cell_of(const RankOrder& rank, const Entry& entry) {
  std::vector<std::size_t> cell;
  for (std::size_t at = 0; at < rank.order.size(); ++at) {
    const Entry& other = rank.order[at];
    if (is_compute(other.kind) && other.chunk == entry.chunk &&
        other.microbatch == entry.microbatch)
      cell.push_back(at);
  }
  return cell;
}

// The graphs of a microbatch are reset before any of them has been replayed.
std::optional<Broken<Schedule>> reset_before_replay(const Schedule& sound, std::size_t choice) {
  const Position some = chosen(compute_entries(sound), choice).value();
  Schedule schedule = sound;
  RankOrder& rank = schedule.ranks[some.rank];
  const Entry& entry = rank.order[some.at];
  std::size_t first = cell_of(rank, entry).front();
  const Place place = fault_place(schedule, {.rank = some.rank, .at = first});
  while (rank.order[first].group == Group::Continues) --first;
  rank.resets = {{.chunk = entry.chunk,
                  .microbatch = entry.microbatch,
                  .behind = static_cast<std::uint32_t>(first)}};
  return {{schedule, "Y03", place}};
}

// The graphs of a chunk are reset behind a computation that is not its microbatch's last. The
// witness begins with that computation.
std::optional<Broken<Schedule>> reset_in_between(const Schedule& sound, std::size_t choice) {
  const Position some = chosen(compute_entries(sound), choice).value();
  Schedule schedule = sound;
  RankOrder& rank = schedule.ranks[some.rank];
  const Entry& entry = rank.order[some.at];
  const std::uint32_t behind = behind_entry(rank.order, some.at);
  const std::vector<std::size_t> cell = cell_of(rank, entry);
  const auto late = std::lower_bound(cell.begin(), cell.end(), behind);
  if (late == cell.end()) return std::nullopt;
  rank.resets = {{.chunk = entry.chunk, .behind = behind}};
  return {{schedule, "Y04", fault_place(schedule, {.rank = some.rank, .at = *std::prev(late)})}};
}

// A chunk is reset that the rank does not have. No entry is about it.
std::optional<Broken<Schedule>> reset_of_nothing(const Schedule& sound, std::size_t choice) {
  Schedule schedule = sound;
  RankOrder& rank = schedule.ranks[choice % sound.ranks.size()];
  rank.resets = {
      {.chunk = rank.chunks + 1, .behind = static_cast<std::uint32_t>(rank.order.size())}};
  return {{schedule, "Y05", std::nullopt}};
}

constexpr std::array kOrderFaults{
    OrderFault{"drop-action", {"S06", "S21"}, drop_action},
    OrderFault{"drop-microbatch", {"S21"}, drop_microbatch},
    OrderFault{"double-action", {"S20"}, double_action},
    OrderFault{"other-microbatch", {"S21"}, other_microbatch},
    OrderFault{"microbatch-beyond", {"S19"}, microbatch_beyond},
    OrderFault{"whole-and-split", {"S22"}, whole_and_split},
    OrderFault{"backward-before-forward", {"D01"}, backward_before_forward},
    OrderFault{"weight-before-backward", {"D02"}, weight_before_backward},
    OrderFault{"reshard-early", {"D05"}, reshard_early},
    OrderFault{"exchange-early", {"D06"}, exchange_early},
    OrderFault{"stage-twice", {"P01"}, stage_twice},
    OrderFault{"stage-nowhere", {"P02"}, stage_nowhere},
    OrderFault{"stage-unknown", {"P03"}, stage_unknown},
    OrderFault{"stage-order", {"D03"}, stage_order},
    OrderFault{"backward-order", {"D03"}, backward_order},
    OrderFault{"dependency-cycle", {"D04"}, dependency_cycle},
    OrderFault{"reset-before-replay", {"Y03"}, reset_before_replay},
    OrderFault{"reset-in-between", {"Y04"}, reset_in_between},
    OrderFault{"reset-of-nothing", {"Y05"}, reset_of_nothing},
};

}  // namespace

std::span<const OrderFault> order_faults() {
  return kOrderFaults;
}

}  // namespace capo::testing
