#include "testing/generators/moved_transfers.h"

#include "core/base/assert.h"
#include "core/base/index.h"
#include "core/graph/lowered.h"
#include "testing/generators/sound_schedule.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace capo::testing {

namespace {

Schedule draw_communicating(Dice& dice) {
  while (true) {
    Schedule schedule = draw_sound_named_schedule(dice);
    const bool small = std::all_of(schedule.ranks.begin(), schedule.ranks.end(),
                                   [](const RankOrder& rank) { return rank.chunks <= 2; });
    const bool wired = schedule.topology != Topology::Independent;
    if (small && wired && schedule.ranks.size() > 1 && schedule.microbatches <= 3)
      return with_transfers(schedule);
  }
}

// Whether `computation` makes what a send carries, or reads what a receive does.
bool belongs_to(const Entry& computation, const Entry& transfer) {
  const bool forward = transfer.kind == Kind::SendForward || transfer.kind == Kind::ReceiveForward;
  return computation.chunk == transfer.chunk && computation.microbatch == transfer.microbatch &&
         (forward ? computation.kind == Kind::Forward : is_backward(computation.kind));
}

// Places before which an entry may stand: not inside a composite.
bool is_gap(const std::vector<Entry>& order, std::size_t at) {
  return at == order.size() || order[at].group != Group::Continues;
}

// Places before which an entry may stand without parting what it belongs to from it: a send comes
// behind what it sends, a receive before its reader.
std::vector<std::size_t> sensible_places(const std::vector<Entry>& order, const Entry& transfer) {
  const auto partner = std::find_if(
      order.begin(), order.end(), [&](const Entry& entry) { return belongs_to(entry, transfer); });
  const auto at = as_index(partner - order.begin());
  std::vector<std::size_t> places;
  for (std::size_t to = 0; to <= order.size(); ++to) {
    if (is_gap(order, to) && (is_send(transfer.kind) ? to > at : to <= at)) places.push_back(to);
  }
  return places;
}

std::vector<std::size_t> all_places(const std::vector<Entry>& order) {
  std::vector<std::size_t> places;
  for (std::size_t to = 0; to <= order.size(); ++to) {
    if (is_gap(order, to)) places.push_back(to);
  }
  return places;
}

void move_one(Dice& dice, std::vector<Entry>& order) {
  std::vector<std::size_t> transfers;
  for (std::size_t at = 0; at < order.size(); ++at) {
    if (is_transfer(order[at].kind)) transfers.push_back(at);
  }
  if (transfers.empty()) return;
  const std::size_t from = transfers[dice.below(transfers.size())];
  const Entry moved = order[from];
  order.erase(order.begin() + static_cast<std::ptrdiff_t>(from));
  const auto places = dice.one_in(8) ? all_places(order) : sensible_places(order, moved);
  const std::size_t to = places[dice.below(places.size())];
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(to), moved);
}

// Every receive as late as it can be.
void receive_late(std::vector<Entry>& order) {
  std::vector<Entry> receives;
  std::copy_if(order.begin(), order.end(), std::back_inserter(receives),
               [](const Entry& entry) { return is_receive(entry.kind); });
  std::erase_if(order, [](const Entry& entry) { return is_receive(entry.kind); });
  for (const Entry& receive : receives) {
    const auto to = static_cast<std::ptrdiff_t>(sensible_places(order, receive).back());
    order.insert(order.begin() + to, receive);
  }
}

// A send and a receive that stand side by side: who begins is a matter of rendezvous.
void swap_one(Dice& dice, std::vector<Entry>& order) {
  std::vector<std::size_t> pairs;
  for (std::size_t at = 0; at + 1 < order.size(); ++at) {
    const Kind a = order[at].kind;
    const Kind b = order[at + 1].kind;
    if ((is_send(a) && is_receive(b)) || (is_receive(a) && is_send(b))) pairs.push_back(at);
  }
  if (pairs.empty()) return;
  const std::size_t at = pairs[dice.below(pairs.size())];
  std::swap(order[at], order[at + 1]);
}

void fuse_some(Dice& dice, std::vector<Entry>& order) {
  for (std::size_t at = 0; at + 1 < order.size(); ++at) {
    const bool both = is_transfer(order[at].kind) && is_transfer(order[at + 1].kind);
    if (!both || !dice.one_in(8)) continue;
    if (order[at].group == Group::Alone) order[at].group = Group::Opens;
    order[at + 1].group = Group::Continues;
  }
}

Schedule draw(Dice& dice) {
  Schedule schedule = draw_communicating(dice);
  if (dice.one_in(4)) {
    for (RankOrder& rank : schedule.ranks) receive_late(rank.order);
  }
  for (std::size_t moves = dice.below(7); moves > 0; --moves) {
    auto& order = schedule.ranks[dice.below(schedule.ranks.size())].order;
    if (dice.one_in(2)) {
      swap_one(dice, order);
    } else {
      move_one(dice, order);
    }
  }
  for (RankOrder& rank : schedule.ranks) fuse_some(dice, rank.order);
  return schedule;
}

std::vector<Schedule> simpler(const Schedule& schedule) {
  std::vector<Schedule> out;
  for (std::int32_t m = 0; schedule.microbatches > 1 && m < *schedule.microbatches; ++m) {
    Schedule& less = out.emplace_back(schedule);
    --*less.microbatches;
    for (RankOrder& rank : less.ranks) forget_microbatch(rank.order, m);
  }
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const auto& order = schedule.ranks[r].order;
    const bool grouped = std::any_of(
        order.begin(), order.end(), [](const Entry& entry) { return entry.group != Group::Alone; });
    if (!grouped) continue;
    for (Entry& entry : out.emplace_back(schedule).ranks[r].order) entry.group = Group::Alone;
  }
  return out;
}

}  // namespace

Schedule with_transfers(const Schedule& schedule) {
  const WithTransfers added =
      add_transfers(schedule, StageMap(schedule), schedule.microbatches.value());
  CAPO_ASSERT(added.complete, "the schedule is executable");
  return to_schedule(added.lowered, schedule);
}

rc::Gen<Schedule> moved_transfers() {
  return generator(draw, simpler);
}

}  // namespace capo::testing
