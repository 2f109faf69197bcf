#include "testing/edits/transfers.h"

#include "core/base/index.h"
#include "core/graph/lowered.h"
#include "core/graph/stage_map.h"

#include <algorithm>

namespace capo::testing {

namespace {

bool carries_forward(Kind kind) {
  return kind == Kind::SendForward || kind == Kind::ReceiveForward;
}

// The forward or backward of a chunk and microbatch that a transfer of `kind` belongs to.
Position computation_of(const Schedule& schedule, Position transfer) {
  const auto& order = schedule.ranks[transfer.rank].order;
  const Entry& of = order[transfer.at];
  const auto found = std::find_if(order.begin(), order.end(), [&](const Entry& entry) {
    const bool fits =
        carries_forward(of.kind) ? entry.kind == Kind::Forward : is_backward(entry.kind);
    return fits && entry.chunk == of.chunk && entry.microbatch == of.microbatch;
  });
  return {.rank = transfer.rank, .at = as_index(found - order.begin())};
}

Position put(Schedule& schedule, Position place, Entry entry) {
  entry.group = Group::Alone;
  auto& order = schedule.ranks[place.rank].order;
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(place.at), entry);
  return place;
}

}  // namespace

std::vector<Position> transfers_of(const Schedule& schedule, Kind kind) {
  return entries_that(schedule,
                      [&](const Entry& entry, const RankOrder&) { return entry.kind == kind; });
}

std::vector<Position> sends_of(const Schedule& schedule) {
  return entries_that(schedule,
                      [](const Entry& entry, const RankOrder&) { return is_send(entry.kind); });
}

Position receive_of(const Schedule& schedule, Position send) {
  const StageMap map(schedule);
  const Entry& of = schedule.ranks[send.rank].order[send.at];
  const std::int32_t stage = map.stage_of(static_cast<std::int32_t>(send.rank), of.chunk);
  const bool forward = carries_forward(of.kind);
  const StageMap::Place& there = map.home(forward ? map.after(stage) : map.before(stage));
  const auto rank = there.rank.index();
  const Action receive{.kind = forward ? Kind::ReceiveForward : Kind::ReceiveBackward,
                       .chunk = there.chunk,
                       .microbatch = of.microbatch};
  return {.rank = rank, .at = find(schedule.ranks[rank], receive).value()};
}

Position maker_of(const Schedule& schedule, Position send) {
  return computation_of(schedule, send);
}

Position reader_of(const Schedule& schedule, Position receive) {
  return computation_of(schedule, receive);
}

Entry take_out(Schedule& schedule, Position place) {
  auto& order = schedule.ranks[place.rank].order;
  const Entry entry = order[place.at];
  order.erase(order.begin() + static_cast<std::ptrdiff_t>(place.at));
  const bool more = place.at < order.size() && order[place.at].group == Group::Continues;
  if (entry.group == Group::Opens && more) order[place.at].group = Group::Opens;
  return entry;
}

Position put_before(Schedule& schedule, Position place, Entry entry) {
  const auto& order = schedule.ranks[place.rank].order;
  while (place.at < order.size() && order[place.at].group == Group::Continues) --place.at;
  return put(schedule, place, entry);
}

Position put_behind(Schedule& schedule, Position place, Entry entry) {
  const auto& order = schedule.ranks[place.rank].order;
  ++place.at;
  while (place.at < order.size() && order[place.at].group == Group::Continues) ++place.at;
  return put(schedule, place, entry);
}

}  // namespace capo::testing
