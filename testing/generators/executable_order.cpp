#include "testing/generators/executable_order.h"

#include "core/base/index.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace capo::testing {

namespace {

using Orders = std::vector<std::vector<Entry>>;

Orders orders_of(const Schedule& schedule, bool replayed) {
  Orders orders;
  for (const RankOrder& rank : schedule.ranks)
    orders.push_back(replayed && rank.replay ? *rank.replay : rank.order);
  return orders;
}

std::size_t composite_end(const std::vector<Entry>& order, std::size_t begin) {
  std::size_t end = begin + 1;
  while (end < order.size() && order[end].group == Group::Continues) ++end;
  return end;
}

// Every rank runs what is next in its order, a composite's members together, until nobody can.
bool can_be_executed(const Schedule& schedule, const Orders& orders) {
  Progress progress(schedule);
  std::vector<std::size_t> at(orders.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < orders.size(); ++r) {
      if (at[r] == orders[r].size()) continue;
      const auto first = orders[r].begin() + static_cast<std::ptrdiff_t>(at[r]);
      const auto last =
          orders[r].begin() + static_cast<std::ptrdiff_t>(composite_end(orders[r], at[r]));
      if (!std::all_of(first, last,
                       [&](const Entry& entry) { return progress.may_run(r, entry.action()); })) {
        continue;
      }
      for (auto entry = first; entry != last; ++entry) progress.run(r, entry->action());
      at[r] = as_index(last - orders[r].begin());
      moved = true;
    }
  }
  for (std::size_t r = 0; r < orders.size(); ++r) {
    if (at[r] < orders[r].size()) return false;
  }
  return true;
}

// A rank runs its order as it stands if `keeps(rank)`. Actions that can never run come last.
template <typename Keeps>
Orders rearranged(const Schedule& schedule, Orders orders, Keeps keeps) {
  Progress progress(schedule);
  Orders out(orders.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < orders.size(); ++r) {
      const auto end = keeps(r) && !orders[r].empty() ? orders[r].begin() + 1 : orders[r].end();
      const auto next = std::find_if(orders[r].begin(), end, [&](const Entry& entry) {
        return progress.may_run(r, entry.action());
      });
      if (next == end) continue;
      progress.run(r, next->action());
      out[r].push_back(*next);
      out[r].back().group = Group::Alone;
      orders[r].erase(next);
      moved = true;
    }
  }
  for (std::size_t r = 0; r < orders.size(); ++r)
    out[r].insert(out[r].end(), orders[r].begin(), orders[r].end());
  return out;
}

}  // namespace

bool Progress::may_run(std::size_t rank, const Action& action) const {
  if (!is_compute(action.kind)) return true;
  const std::int32_t stage = map_.stage_of(static_cast<std::int32_t>(rank), action.chunk);
  switch (action.kind) {
    case Kind::Forward:
      return has(Made::Forward, map_.before(stage), action.microbatch);
    case Kind::BackwardWeight:
      return has(Made::Backward, stage, action.microbatch);
    default:
      return has(Made::Forward, stage, action.microbatch) &&
             has(Made::Backward, map_.after(stage), action.microbatch);
  }
}

void Progress::run(std::size_t rank, const Action& action) {
  if (!is_compute(action.kind)) return;
  const Made made = action.kind == Kind::Forward          ? Made::Forward
                    : action.kind == Kind::BackwardWeight ? Made::Weight
                                                          : Made::Backward;
  made_.emplace(made, map_.stage_of(static_cast<std::int32_t>(rank), action.chunk),
                action.microbatch);
}

bool executable(const Schedule& schedule) {
  return can_be_executed(schedule, orders_of(schedule, false)) &&
         can_be_executed(schedule, orders_of(schedule, true));
}

Schedule in_executable_order(Schedule schedule) {
  if (executable(schedule)) return schedule;
  Orders captured =
      rearranged(schedule, orders_of(schedule, false), [](std::size_t) { return false; });
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r)
    schedule.ranks[r].order = std::move(captured[r]);
  // A rank without a replay order replays as it captures.
  Orders replayed = rearranged(schedule, orders_of(schedule, true),
                               [&](std::size_t r) { return !schedule.ranks[r].replay; });
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    if (schedule.ranks[r].replay) schedule.ranks[r].replay = std::move(replayed[r]);
  }
  return schedule;
}

}  // namespace capo::testing
