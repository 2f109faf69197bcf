// Faults of a plan: an entry runs after another one has taken over the memory it reads, or the plan
// is made for other tensors or other streams than the order has.
//
//   F1.0 B1.0 F1.1      F1.1 gets the memory of F1.0's input, which B1.0 freed
//
// Memory is followed with a plain queue for each rank, since all layers of sound_planned() look
// alike; it is written apart from core/plan on purpose. The table at the end names the faults.
// Tested by fault_test.cpp and tests/properties/plan_faults_test.cpp.

#include "core/base/index.h"
#include "testing/faults/faults.h"

#include "testing/edits/entries.h"
#include "testing/generators/sound_declared.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

namespace capo::testing {

namespace {

// The entry of `kind` for the chunk and microbatch of the one at `place`, on its rank; nullopt if
// there is none.
std::optional<Position> fellow(const Schedule& schedule, Position place, Kind kind) {
  const RankOrder& rank = schedule.ranks[place.rank];
  Action action = rank.order[place.at].action();
  action.kind = kind;
  const auto at = find(rank, action);
  if (!at) return std::nullopt;
  return Position{.rank = place.rank, .at = *at};
}

// A forward whose static input another forward had before it.
struct TakeOver {
  Position maker;   ///< the forward whose sample made the input
  Position before;  ///< the forward that had the input last
  Position taker;
};

// The take-overs of all ranks, in the order of their takers.
std::vector<TakeOver> take_overs(const Schedule& schedule) {
  struct Input {
    Position maker;
    Position last;
  };
  std::vector<TakeOver> found;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const auto& order = schedule.ranks[r].order;
    std::deque<Input> freed;
    std::vector<Input> held;
    for (std::size_t at = 0; at < order.size(); ++at) {
      const Position here{.rank = r, .at = at};
      if (order[at].kind == Kind::Forward) {
        Input input{.maker = here, .last = here};
        if (!freed.empty()) {
          input.maker = freed.front().maker;
          found.push_back({.maker = input.maker, .before = freed.front().last, .taker = here});
          freed.pop_front();
        }
        held.push_back(input);
      } else if (order[at].kind == Kind::Backward) {
        const auto forward = fellow(schedule, here, Kind::Forward);
        const auto input = std::find_if(
            held.begin(), held.end(), [&](const Input& one) { return one.last.at == forward->at; });
        freed.push_back(*input);
        held.erase(input);
      }
    }
  }
  return found;
}

// A delayed weight gradient with a later backward on its rank.
struct PassedBy {
  Position weight;
  Position backward;  ///< the next one
};

std::vector<PassedBy> weights_before_backwards(const Schedule& schedule) {
  std::vector<PassedBy> found;
  for (const Position weight : entries_that(schedule, [](const Entry&entry, const RankOrder&) {
         return entry.kind == Kind::BackwardWeight;
       })) {
    const auto& order = schedule.ranks[weight.rank].order;
    for (std::size_t at = weight.at; at < order.size(); ++at) {
      if (order[at].kind != Kind::Backward) continue;
      found.push_back({.weight = weight, .backward = {.rank = weight.rank, .at = at}});
      break;
    }
  }
  return found;
}

// The first entry of a kind, of one chunk or any.
std::optional<std::size_t> first_of(const RankOrder& rank, Kind kind,
                                    std::optional<std::int32_t> chunk = {}) {
  for (std::size_t at = 0; at < rank.order.size(); ++at) {
    const Entry& entry = rank.order[at];
    if (entry.kind == kind && (!chunk || entry.chunk == *chunk)) return at;
  }
  return std::nullopt;
}

// The index in the table of the module that the entry's chunk has.
std::int32_t module_of(const Declared& declared, Position place) {
  const std::int32_t chunk = declared.schedule.ranks[place.rank].order[place.at].chunk;
  return declared.options.modules.layers[place.rank][as_index(chunk) - 1].front();
}

// Gives a chunk a module of its own: its old one, spoilt.
void give_module(Declared& declared, std::size_t rank, std::int32_t chunk,
                 const std::function<void(Module&)>& spoil) {
  ModuleTable& table = declared.options.modules;
  auto& layer = table.layers[rank][as_index(chunk) - 1].front();
  Module module = table.list[as_index(layer)];
  module.name = "faulty";
  spoil(module);
  layer = static_cast<std::int32_t>(table.list.size());
  table.list.push_back(std::move(module));
}

// Moves an entry to right behind a later one of its rank.
void move_behind(std::vector<Entry>& order, std::size_t from, std::size_t behind) {
  const auto first = order.begin() + static_cast<std::ptrdiff_t>(from);
  std::rotate(first, first + 1, order.begin() + static_cast<std::ptrdiff_t>(behind) + 1);
}

// A weight gradient comes behind the forward that takes its input over.
std::optional<Broken<Declared>> delay_weight_past_forward(const Declared& sound,
                                                          std::size_t choice) {
  std::vector<TakeOver> candidates = take_overs(sound.schedule);
  std::erase_if(candidates, [&](const TakeOver& one) {
    return !fellow(sound.schedule, one.before, Kind::BackwardWeight);
  });
  const auto slip = chosen(candidates, choice);
  if (!slip) return std::nullopt;
  Declared broken = sound;
  const Position weight = *fellow(sound.schedule, slip->before, Kind::BackwardWeight);
  move_behind(broken.schedule.ranks[weight.rank].order, weight.at, slip->taker.at);
  return {{broken, "B01", fault_place(broken.schedule, slip->before)}};
}

// A weight gradient comes behind the next backward of its rank, of any chunk.
std::optional<Broken<Declared>> delay_weight_past_backward(const Declared& sound,
                                                           std::size_t choice) {
  const auto slip = chosen(weights_before_backwards(sound.schedule), choice);
  if (!slip) return std::nullopt;
  Declared broken = sound;
  const Position backward = *fellow(sound.schedule, slip->weight, Kind::Backward);
  move_behind(broken.schedule.ranks[slip->weight.rank].order, slip->weight.at, slip->backward.at);
  return {{broken, "B02", fault_place(broken.schedule, backward)}};
}

// In a chain on one rank, the gradient that a chunk hands back is read behind the backwards of the
// next microbatch: the first of them frees its memory and the second takes it.
//
//   B2.0 B1.0 B2.1 B1.1   -->   B2.0 B2.1 B1.1 B1.0
std::optional<Broken<Declared>> delay_reader_of_gradient(const Declared& sound,
                                                         std::size_t choice) {
  const Schedule& schedule = sound.schedule;
  if (schedule.topology != Topology::Chain || schedule.ranks.front().chunks < 2)
    return std::nullopt;
  // A backward of the first chunk can be read late if another one comes behind it.
  std::vector<Position> readers = entries_that(schedule, [](const Entry& entry, const RankOrder&) {
    return entry.kind == Kind::Backward && entry.chunk == 1;
  });
  if (readers.size() < 2) return std::nullopt;
  const std::size_t nth = choice % (readers.size() - 1);
  const Position reader = readers[nth];
  Declared broken = sound;
  auto& order = broken.schedule.ranks.front().order;
  Position maker = reader;
  while (order[maker.at].kind != Kind::Backward || order[maker.at].chunk != 2) --maker.at;
  // Its weight gradient stays behind it.
  const bool delays = fellow(schedule, reader, Kind::BackwardWeight).has_value();
  const std::size_t last = readers[nth + 1].at + (delays ? 1 : 0);
  move_behind(order, reader.at, last);
  if (delays) move_behind(order, reader.at, last);
  return {{broken, "B03", fault_place(broken.schedule, maker)}};
}

// Chunks that were chunks of the model become the layers of one chunk of the model: the gradient
// that the first layer hands back is then sent for longer than its memory is kept.
std::optional<Broken<Declared>> layers_for_chunks(const Declared& sound, std::size_t choice) {
  const Schedule& schedule = sound.schedule;
  // A first layer's backward makes the gradient, the next backward of another layer frees it, and
  // the next backward of the first layer takes the memory at the latest.
  std::vector<Position> candidates;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    std::optional<Position> first;
    bool another = false;
    const auto& order = schedule.ranks[r].order;
    for (std::size_t at = 0; at < order.size(); ++at) {
      if (order[at].kind != Kind::Backward) continue;
      if (order[at].chunk != 1) {
        another = true;
        continue;
      }
      if (first && another) candidates.push_back(*first);
      first = Position{.rank = r, .at = at};
      another = false;
    }
  }
  const auto sent = chosen(candidates, choice);
  if (!sent) return std::nullopt;
  Declared broken = sound;
  broken.options.plan.model_chunks = {schedule.ranks.front().chunks};
  return {{broken, "B04", fault_place(schedule, *sent)}};
}

// A chunk's input needs no gradient, and another chunk takes that input over.
std::optional<Broken<Declared>> forget_requires_grad(const Declared& sound, std::size_t choice) {
  const auto chunk_of = [&](Position place) {
    return sound.schedule.ranks[place.rank].order[place.at].chunk;
  };
  const std::vector<TakeOver> all = take_overs(sound.schedule);
  std::vector<TakeOver> candidates = all;
  std::erase_if(candidates,
                [&](const TakeOver& one) { return chunk_of(one.maker) == chunk_of(one.taker); });
  const auto slip = chosen(candidates, choice);
  if (!slip) return std::nullopt;
  Declared broken = sound;
  give_module(broken, slip->maker.rank, chunk_of(slip->maker),
              [](Module& module) { module.flags.input_requires_grad = false; });
  // The finding shows the first take-over that the two modules share.
  const auto shown = std::find_if(candidates.begin(), candidates.end(), [&](const TakeOver& one) {
    return one.maker.rank == slip->maker.rank && chunk_of(one.maker) == chunk_of(slip->maker) &&
           module_of(sound, one.taker) == module_of(sound, slip->taker);
  });
  return {{broken, "B05", fault_place(broken.schedule, shown->maker)}};
}

// A chunk's output that needs a gradient changes its place among the others.
std::optional<Broken<Declared>> swap_outputs(const Declared& sound, std::size_t choice) {
  const auto backward =
      chosen(entries_that(sound.schedule,
                          [](const Entry& entry, const RankOrder& rank) {
                            return entry.kind == Kind::Backward &&
                                   entry.chunk != rank.order[*first_of(rank, Kind::Backward)].chunk;
                          }),
             choice);
  if (!backward) return std::nullopt;
  Declared broken = sound;
  const RankOrder& rank = broken.schedule.ranks[backward->rank];
  give_module(broken, backward->rank, rank.order[backward->at].chunk,
              [](Module& module) { module.output_position = 1; });
  const Position first{.rank = backward->rank, .at = *first_of(rank, Kind::Backward)};
  return {{broken, "B06", fault_place(broken.schedule, first)}};
}

// A chunk's output is transposed.
std::optional<Broken<Declared>> transpose_output(const Declared& sound, std::size_t choice) {
  const auto forward = chosen(
      entries_that(sound.schedule,
                   [](const Entry& entry, const RankOrder& rank) {
                     return entry.kind == Kind::Forward &&
                            &entry == &rank.order[*first_of(rank, Kind::Forward, entry.chunk)];
                   }),
      choice);
  Declared broken = sound;
  const std::int32_t chunk = sound.schedule.ranks[forward->rank].order[forward->at].chunk;
  give_module(broken, forward->rank, chunk,
              [](Module& module) { module.flags.contiguous_output = false; });
  return {{broken, "B07", fault_place(broken.schedule, *forward)}};
}

// A rank may take no more than the static input of one graph.
std::optional<Broken<Declared>> shrink_budget(const Declared& sound, std::size_t choice) {
  Declared broken = sound;
  const ModuleShape& shape = broken.options.modules.list.front().shape;
  broken.options.plan.budget = 2 * *shape.tokens * *shape.hidden;
  const Place place{.rank = static_cast<std::int32_t>(choice % sound.schedule.ranks.size())};
  return {{broken, "B08", place}};
}

// Weight gradients go to a stream of their own, and the next backward does not wait for them.
std::optional<Broken<Declared>> weight_stream(const Declared& sound, std::size_t choice) {
  const auto slip = chosen(weights_before_backwards(sound.schedule), choice);
  if (!slip) return std::nullopt;
  Declared broken = sound;
  broken.options.environment.weight_stream = true;
  const Position backward = *fellow(sound.schedule, slip->weight, Kind::Backward);
  return {{broken, "E01", fault_place(broken.schedule, backward)}};
}

// Weight gradients of grouped products go to a stream of their own: all kinds of them share one
// workspace with the backwards.
std::optional<Broken<Declared>> grouped_weight_stream(const Declared& sound, std::size_t choice) {
  constexpr std::array kKinds{ModuleKind::GroupedLinear, ModuleKind::GroupedLinearOp,
                              ModuleKind::GroupedMlp};
  auto broken = weight_stream(sound, choice);
  if (!broken) return std::nullopt;
  for (Module& module : broken->subject.options.modules.list) {
    module.kind = kKinds[choice % kKinds.size()];
    module.shape.groups = 4;
    module.splits = Splits::Device;
  }
  broken->rule = "E02";
  return broken;
}

// A replay runs a weight gradient behind the forward that takes its input over; the capture does
// not.
std::optional<Broken<Declared>> replay_out_of_order(const Declared& sound, std::size_t choice) {
  auto broken = delay_weight_past_forward(sound, choice);
  if (!broken) return std::nullopt;
  const auto rank = as_index(broken->place->rank);
  RankOrder& replayed = broken->subject.schedule.ranks[rank];
  const auto& captured = sound.schedule.ranks[rank].order;
  replayed.replay = std::move(replayed.order);
  replayed.order = captured;
  std::size_t parting = 0;
  while (captured[parting].action() == (*replayed.replay)[parting].action()) ++parting;
  broken->rule = "Y01";
  broken->place->index = parting;
  return broken;
}

// All graphs of a rank are reset, and then a chunk's output is sent. Chunks that follow each other
// on one rank send nothing.
std::optional<Broken<Declared>> reset_before_send(const Declared& sound, std::size_t choice) {
  if (sound.schedule.topology != Topology::Independent) return std::nullopt;
  Declared broken = sound;
  const std::size_t r = choice % broken.schedule.ranks.size();
  RankOrder& rank = broken.schedule.ranks[r];
  const auto forward = std::find_if(rank.order.begin(), rank.order.end(),
                                    [](const Entry& entry) { return entry.kind == Kind::Forward; });
  const auto end = static_cast<std::uint32_t>(rank.order.size());
  Entry send = *forward;
  send.kind = Kind::SendForward;
  rank.order.push_back(send);
  rank.resets = {{.behind = end}};
  return {{broken, "Y02", Place{.rank = static_cast<std::int32_t>(r), .index = end}}};
}

// Two forwards next to each other change places in the replay, where graphs reload from a stash.
std::optional<Broken<Declared>> stash_out_of_order(const Declared& sound, std::size_t choice) {
  std::vector<Position> firsts;
  const auto& ranks = sound.schedule.ranks;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].replay) continue;
    const auto& order = ranks[r].order;
    for (std::size_t at = 0; at + 1 < order.size(); ++at) {
      const Entry& one = order[at];
      const Entry& next = order[at + 1];
      const bool forwards = one.kind == Kind::Forward && next.kind == Kind::Forward;
      // Two microbatches do not read each other.
      if (forwards && one.microbatch != next.microbatch) firsts.push_back({.rank = r, .at = at});
    }
  }
  const auto place = chosen(firsts, choice);
  if (!place) return std::nullopt;
  Declared broken = sound;
  broken.options.plan.paged_stash = true;
  RankOrder& rank = broken.schedule.ranks[place->rank];
  rank.replay = rank.order;
  std::swap((*rank.replay)[place->at], (*rank.replay)[place->at + 1]);
  // The graph before them reloads for the wrong one, or the first does if there is none before.
  std::size_t at = place->at;
  while (at > 0 && !is_compute((*rank.replay)[at - 1].kind)) --at;
  return {{broken, "Y06",
           fault_place(broken.schedule, {.rank = place->rank, .at = at > 0 ? at - 1 : place->at})}};
}

constexpr std::array kPlanFaults{
    PlanFault{"delay-weight-past-forward", {"B01"}, delay_weight_past_forward},
    PlanFault{"delay-weight-past-backward", {"B02"}, delay_weight_past_backward},
    PlanFault{"delay-reader-of-gradient", {"B03"}, delay_reader_of_gradient},
    PlanFault{"layers-for-chunks", {"B04"}, layers_for_chunks},
    PlanFault{"forget-requires-grad", {"B05"}, forget_requires_grad},
    PlanFault{"swap-outputs", {"B06"}, swap_outputs},
    PlanFault{"transpose-output", {"B07"}, transpose_output},
    PlanFault{"shrink-budget", {"B08"}, shrink_budget},
    PlanFault{"weight-stream", {"E01"}, weight_stream},
    PlanFault{"grouped-weight-stream", {"E02"}, grouped_weight_stream},
    PlanFault{"replay-out-of-order", {"Y01"}, replay_out_of_order},
    PlanFault{"reset-before-send", {"Y02"}, reset_before_send},
    PlanFault{"stash-out-of-order", {"Y06"}, stash_out_of_order},
};

}  // namespace

std::span<const PlanFault> plan_faults() {
  return kPlanFaults;
}

}  // namespace capo::testing
