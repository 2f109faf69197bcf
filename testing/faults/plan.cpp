#include "testing/faults/plan.h"

#include <algorithm>
#include <deque>

namespace capo::testing::faults {

std::vector<TakeOver> take_overs(const Schedule& schedule) {
  struct Input {
    EntryPlace maker;
    EntryPlace last;
  };
  std::vector<TakeOver> found;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const auto& order = schedule.ranks[r].order;
    std::deque<Input> freed;
    std::vector<Input> held;
    for (std::size_t at = 0; at < order.size(); ++at) {
      const EntryPlace here{.rank = r, .at = at};
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

std::optional<EntryPlace> fellow(const Schedule& schedule, EntryPlace place, Kind kind) {
  const RankOrder& rank = schedule.ranks[place.rank];
  Action action = rank.order[place.at].action();
  action.kind = kind;
  const auto at = find(rank, action);
  if (!at) return std::nullopt;
  return EntryPlace{.rank = place.rank, .at = *at};
}

std::vector<PassedBy> weights_before_backwards(const Schedule& schedule) {
  std::vector<PassedBy> found;
  for (const EntryPlace weight : entries_that(schedule, [](const Entry&entry, const RankOrder&) {
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

std::optional<std::size_t> first_of(const RankOrder& rank, Kind kind,
                                    std::optional<std::int32_t> chunk) {
  for (std::size_t at = 0; at < rank.order.size(); ++at) {
    const Entry& entry = rank.order[at];
    if (entry.kind == kind && (!chunk || entry.chunk == *chunk)) return at;
  }
  return std::nullopt;
}

std::int32_t module_of(const Declared& declared, EntryPlace place) {
  const std::int32_t chunk = declared.schedule.ranks[place.rank].order[place.at].chunk;
  return declared.options.modules.layers[place.rank][static_cast<std::size_t>(chunk) - 1].front();
}

void give_module(Declared& declared, std::size_t rank, std::int32_t chunk,
                 const std::function<void(Module&)>& spoil) {
  ModuleTable& table = declared.options.modules;
  auto& layer = table.layers[rank][static_cast<std::size_t>(chunk) - 1].front();
  Module module = table.list[static_cast<std::size_t>(layer)];
  module.name = "faulty";
  spoil(module);
  layer = static_cast<std::int32_t>(table.list.size());
  table.list.push_back(std::move(module));
}

void move_behind(std::vector<Entry>& order, std::size_t from, std::size_t behind) {
  const auto first = order.begin() + static_cast<std::ptrdiff_t>(from);
  std::rotate(first, first + 1, order.begin() + static_cast<std::ptrdiff_t>(behind) + 1);
}

}  // namespace capo::testing::faults
