// Faults of what ranks exchange: Megatron's calls do not suit the orders, a transfer has one end or
// stands in the wrong place, or collectives of two ranks meet in different sequences.
//
//   gpu0: F0 send F0      gpu1: F0      drop-receive: T03 at the send
//
// The table at the end names the faults. Tested by fault_test.cpp and
// tests/properties/transfers_test.cpp.

#include "core/base/index.h"
#include "testing/faults/faults.h"

#include "core/graph/lowered.h"
#include "core/graph/stage_map.h"
#include "testing/edits/entries.h"
#include "testing/edits/transfers.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace capo::testing {

namespace {

// Between the first backward and the last forward a forward comes before the backward ahead of it,
// so that two forwards follow each other.
std::optional<Broken<Communication>> two_forwards(const Communication& sound, std::size_t choice) {
  if (!sound.environment.p2p) return std::nullopt;
  std::vector<Position> found;
  for (std::size_t r = 0; r < sound.schedule.ranks.size(); ++r) {
    const auto& order = sound.schedule.ranks[r].order;
    bool backwards = false;
    for (std::size_t at = 0; at + 2 < order.size(); ++at) {
      const bool turn = order[at].kind == Kind::Forward && order[at + 1].kind == Kind::Backward &&
                        order[at + 2].kind == Kind::Forward;
      if (turn && backwards) found.push_back({.rank = r, .at = at + 2});
      backwards = backwards || order[at].kind == Kind::Backward;
    }
  }
  const auto place = chosen(found, choice);
  if (!place) return std::nullopt;
  Communication broken = sound;
  const Entry moved = take_out(broken.schedule, *place);
  const Position ahead =
      put_before(broken.schedule, {.rank = place->rank, .at = place->at - 1}, moved);
  return {{broken, "R01", fault_place(broken.schedule, ahead)}};
}

// Two microbatches change their numbers on every rank: all of them agree, but none runs its
// microbatches in ascending order, as Megatron's loops do.
std::optional<Broken<Communication>> swapped_microbatches(const Communication& sound,
                                                          std::size_t /*choice*/) {
  if (!sound.environment.p2p || sound.schedule.microbatches.value_or(0) < 2) return std::nullopt;
  Communication broken = sound;
  broken.schedule.naming = Naming::Named;
  for (RankOrder& rank : broken.schedule.ranks) {
    for (Entry& entry : rank.order) {
      if (entry.microbatch == 0 || entry.microbatch == 1) entry.microbatch = 1 - entry.microbatch;
    }
  }
  return {{broken, "R01", Place{.rank = 0, .index = 0}}};
}

// Calls overlap, though a rank has the warm-up of Megatron's loop without model chunks, which waits
// for each call.
std::optional<Broken<Communication>> overlapping_plain_loop(const Communication& sound,
                                                            std::size_t /*choice*/) {
  const Schedule& schedule = sound.schedule;
  if (sound.environment.p2p != MegatronCalls::Batch || sound.environment.ep_overlap) {
    return std::nullopt;
  }
  // The rank before the last has one forward of warm-up if its order has more than that.
  const RankOrder& rank = schedule.ranks[schedule.ranks.size() - 2];
  if (rank.chunks > 1 || schedule.microbatches.value_or(0) < 3) return std::nullopt;
  if (rank.order[2].kind != Kind::Backward) return std::nullopt;
  Communication broken = sound;
  broken.environment.p2p = MegatronCalls::Overlap;
  return {{broken, "R01", std::nullopt}};
}

// Exchanges overlap, and the warm-up is one forward too short for that: the last rank would run the
// first backward at the same time as the forward whose activations it reads.
std::optional<Broken<Communication>> beside_own_forward(const Communication& sound,
                                                        std::size_t /*choice*/) {
  const RankOrder& last = sound.schedule.ranks.back();
  if (!sound.environment.p2p || sound.environment.ep_overlap || last.chunks == 1) {
    return std::nullopt;
  }
  Communication broken = sound;
  broken.environment.ep_overlap = true;
  const auto first = std::find_if(last.order.begin(), last.order.end(),
                                  [](const Entry& entry) { return entry.kind == Kind::Backward; });
  const Place place{.rank = static_cast<std::int32_t>(sound.schedule.ranks.size()) - 1,
                    .index = as_index(first - last.order.begin())};
  return {{broken, "R01", place}};
}

// Overlapped calls get the flush though the last rank has no warm-up: it waits before its first
// forward for a receive that was never posted.
std::optional<Broken<Communication>> flush_without_warmup(const Communication& sound,
                                                          std::size_t /*choice*/) {
  const RankOrder& last = sound.schedule.ranks.back();
  if (sound.environment.p2p != MegatronCalls::Overlap || last.chunks > 1 ||
      sound.environment.ep_overlap)
    return std::nullopt;
  Communication broken = sound;
  broken.environment.p2p = MegatronCalls::Flush;
  const auto rank = static_cast<std::int32_t>(sound.schedule.ranks.size()) - 1;
  return {{broken, "R02", Place{.rank = rank, .index = 0}}};
}

// A transfer is done a second time, at the end of its rank's order; the witness begins with the
// first one.
std::optional<Broken<Communication>> repeat_transfer(const Communication& sound,
                                                     std::size_t choice) {
  const auto transfers = entries_that(
      sound.schedule, [](const Entry& entry, const RankOrder&) { return is_transfer(entry.kind); });
  const auto place = chosen(transfers, choice);
  if (!place) return std::nullopt;
  Communication broken = sound;
  auto& order = broken.schedule.ranks[place->rank].order;
  Entry again = order[place->at];
  again.group = Group::Alone;
  order.push_back(again);
  return {{broken, "T01", fault_place(broken.schedule, *place)}};
}

// The last stage sends its output on, or the first one its gradient.
std::optional<Broken<Communication>> send_beyond(const Communication& sound, std::size_t choice) {
  if (sends_of(sound.schedule).empty()) return std::nullopt;
  const StageMap map(sound.schedule);
  const bool forward = choice % 2 == 0;
  const StageMap::Place& end = map.home(forward ? map.stages() - 1 : 0);
  const auto makers = entries_that(sound.schedule, [&](const Entry& entry, const RankOrder& rank) {
    const bool here = &rank == &sound.schedule.ranks[end.rank.index()];
    const bool makes = forward ? entry.kind == Kind::Forward : is_backward(entry.kind);
    return here && makes && entry.chunk == end.chunk;
  });
  const Position maker = chosen(makers, choice / 2).value();
  Communication broken = sound;
  Entry send = broken.schedule.ranks[maker.rank].order[maker.at];
  send.kind = forward ? Kind::SendForward : Kind::SendBackward;
  const Position place = put_behind(broken.schedule, maker, send);
  return {{broken, "T02", fault_place(broken.schedule, place)}};
}

// A message is sent and not received; the finding is at the send.
std::optional<Broken<Communication>> drop_receive(const Communication& sound, std::size_t choice) {
  const auto send = chosen(sends_of(sound.schedule), choice);
  if (!send) return std::nullopt;
  Communication broken = sound;
  take_out(broken.schedule, receive_of(broken.schedule, *send));
  return {{broken, "T03", fault_place(broken.schedule, *send)}};
}

// A message is received and not sent; the finding is at the receive.
std::optional<Broken<Communication>> drop_send(const Communication& sound, std::size_t choice) {
  const auto send = chosen(sends_of(sound.schedule), choice);
  if (!send) return std::nullopt;
  Communication broken = sound;
  const Position receive = receive_of(broken.schedule, *send);
  take_out(broken.schedule, *send);
  return {{broken, "T04", fault_place(broken.schedule, receive)}};
}

// A message is neither sent nor received, though others are; the finding is at its reader.
std::optional<Broken<Communication>> drop_both_ends(const Communication& sound,
                                                    std::size_t choice) {
  const auto sends = sends_of(sound.schedule);
  if (sends.size() < 2) return std::nullopt;  // without any, PyTorch's are added
  const Position send = chosen(sends, choice).value();
  Communication broken = sound;
  const Position receive = receive_of(broken.schedule, send);
  take_out(broken.schedule, send);
  const Position reader = reader_of(broken.schedule, receive);
  take_out(broken.schedule, receive);
  // The reader comes behind the receive.
  return {{broken, "T05", fault_place(broken.schedule, {reader.rank, reader.at - 1})}};
}

// A send comes before the computation that makes its message.
std::optional<Broken<Communication>> send_early(const Communication& sound, std::size_t choice) {
  const auto send = chosen(sends_of(sound.schedule), choice);
  if (!send) return std::nullopt;
  Communication broken = sound;
  const Position maker = maker_of(broken.schedule, *send);
  const Entry moved = take_out(broken.schedule, *send);
  const Position place = put_before(broken.schedule, maker, moved);
  return {{broken, "T06", fault_place(broken.schedule, place)}};
}

// A receive comes behind the computation that reads what it receives.
std::optional<Broken<Communication>> receive_late(const Communication& sound, std::size_t choice) {
  const auto send = chosen(sends_of(sound.schedule), choice);
  if (!send) return std::nullopt;
  Communication broken = sound;
  const Position receive = receive_of(broken.schedule, *send);
  Position reader = reader_of(broken.schedule, receive);
  const Entry moved = take_out(broken.schedule, receive);
  --reader.at;  // which comes behind the receive
  const Position place = put_behind(broken.schedule, reader, moved);
  return {{broken, "T07", fault_place(broken.schedule, place)}};
}

// Two receives from one rank have changed places; the finding is at the send that is received
// first.
std::optional<Broken<Communication>> swap_receives(const Communication& sound, std::size_t choice) {
  const auto sends = sends_of(sound.schedule);
  std::vector<std::pair<Position, Position>> pairs;  // sends from one rank to one other
  for (std::size_t i = 0; i < sends.size(); ++i) {
    for (std::size_t k = i + 1; k < sends.size() && sends[k].rank == sends[i].rank; ++k) {
      const std::size_t to = receive_of(sound.schedule, sends[i]).rank;
      if (receive_of(sound.schedule, sends[k]).rank == to) pairs.emplace_back(sends[i], sends[k]);
    }
  }
  const auto pair = chosen(pairs, choice);
  if (!pair) return std::nullopt;
  Communication broken = sound;
  const Position first = receive_of(broken.schedule, pair->first);
  const Position second = receive_of(broken.schedule, pair->second);
  auto& order = broken.schedule.ranks[first.rank].order;
  std::swap(order[first.at], order[second.at]);
  return {{broken, "T08", fault_place(broken.schedule, pair->first)}};
}

// A rank that sends and then receives does it the other way round, and so does not send while the
// other rank waits; the finding is a cycle that goes through the receive. Both directions of a pair
// share a queue here, since with a queue for each direction the two transfers would not meet.
std::optional<Broken<Communication>> receive_before_send(const Communication& sound,
                                                         std::size_t choice) {
  const auto sends = sends_of(sound.schedule);
  std::vector<Position> found;
  for (const Position& send : sends) {
    const auto& order = sound.schedule.ranks[send.rank].order;
    const std::size_t next = send.at + 1;
    if (next >= order.size() || !is_receive(order[next].kind)) continue;
    const std::size_t to = receive_of(sound.schedule, send).rank;
    for (const Position& other : sends) {
      const Position arrives = receive_of(sound.schedule, other);
      const bool is_next = arrives.rank == send.rank && arrives.at == next;
      if (is_next && other.rank == to) found.push_back(send);
    }
  }
  const auto place = chosen(found, choice);
  if (!place) return std::nullopt;
  Communication broken = sound;
  if (broken.environment.communicators == Communicators::PerEdge)
    broken.environment.communicators.reset();
  auto& order = broken.schedule.ranks[place->rank].order;
  std::swap(order[place->at], order[place->at + 1]);
  return {{broken, "T09", fault_place(broken.schedule, *place)}};
}

// A stage sends its output to the next one, which is on the same rank.
std::optional<Broken<Communication>> send_to_itself(const Communication& sound,
                                                    std::size_t choice) {
  if (sends_of(sound.schedule).empty()) return std::nullopt;
  const StageMap map(sound.schedule);
  const auto makers = entries_that(sound.schedule, [&](const Entry& entry, const RankOrder& rank) {
    if (entry.kind != Kind::Forward) return false;
    const auto here = static_cast<std::int32_t>(&rank - sound.schedule.ranks.data());
    const std::int32_t stage = map.stage_of(here, entry.chunk);
    const std::int32_t next = map.after(stage);
    return next != kNoStage && map.same_rank(stage, next);
  });
  const auto maker = chosen(makers, choice);
  if (!maker) return std::nullopt;
  Communication broken = sound;
  Entry send = broken.schedule.ranks[maker->rank].order[maker->at];
  send.kind = Kind::SendForward;
  const Position place = put_behind(broken.schedule, *maker, send);
  return {{broken, "T02", fault_place(broken.schedule, place)}};
}

constexpr Entry kDispatch{.chunk = 1, .microbatch = 0, .kind = Kind::DispatchForward};
constexpr Entry kNextDispatch{.chunk = 1, .microbatch = 1, .kind = Kind::DispatchForward};
constexpr Entry kCombine{.chunk = 1, .microbatch = 0, .kind = Kind::CombineForward};

using Exchanges = std::vector<Entry>;

struct Crossing {
  std::array<Exchanges, 2> of;  ///< each of the two ranks has one list
  std::size_t rank = 0;         ///< the finding names an exchange of this rank first
  std::size_t at = 0;           ///< indexes that rank's list
};

Crossing crossing_by(std::size_t choice, std::int32_t microbatches) {
  if (choice % 3 == 1) {
    return {.of = {Exchanges{kDispatch}, Exchanges{microbatches > 1 ? kNextDispatch : kCombine}}};
  }
  if (choice % 3 == 2)
    return {.of = {Exchanges{kDispatch}, Exchanges{kDispatch, kCombine}}, .rank = 1, .at = 1};
  return {.of = {Exchanges{kDispatch, kCombine}, Exchanges{kCombine, kDispatch}}};
}

// The first two ranks exchange the tokens of a first forward, but in different sequences: one rank
// combines before it dispatches, or exchanges another microbatch's tokens, or combines and the
// other rank does not.
std::optional<Broken<Communication>> crossed_collectives(const Communication& sound,
                                                         std::size_t choice) {
  if (sound.environment.p2p) return std::nullopt;  // Megatron makes exchanges of its own
  Communication broken = sound;
  broken.groups.push_back({.name = "experts",
                           .members = {0, 1},
                           .actions = {Kind::DispatchForward, Kind::CombineForward}});
  const Crossing crossing = crossing_by(choice, *sound.schedule.microbatches);
  Position named{};
  for (const std::size_t rank : {0, 1}) {
    const Exchanges& exchanges = crossing.of[rank];
    const Action forward{
        .kind = Kind::Forward, .chunk = 1, .microbatch = exchanges.front().microbatch};
    Position behind{.rank = rank, .at = find(broken.schedule.ranks[rank], forward).value()};
    for (std::size_t at = 0; at < exchanges.size(); ++at) {
      behind = put_behind(broken.schedule, behind, exchanges[at]);
      if (rank == crossing.rank && at == crossing.at) named = behind;
    }
  }
  return {{broken, "T10", fault_place(broken.schedule, named)}};
}

// The first two ranks reshard and unshard their first chunk at the end of their orders, on two
// streams between which there is no event.
std::optional<Broken<Communication>> racing_collectives(const Communication& sound,
                                                        std::size_t /*choice*/) {
  if (sound.environment.p2p) return std::nullopt;  // Megatron's orders hold none
  Communication broken = sound;
  broken.groups.push_back({.name = "shards",
                           .members = {0, 1},
                           .actions = {Kind::Unshard, Kind::Reshard},
                           .streams = {{Kind::Unshard, "other"}}});
  for (const std::size_t rank : {0, 1}) {
    for (const Kind kind : {Kind::Reshard, Kind::Unshard})
      broken.schedule.ranks[rank].order.push_back({.chunk = 1, .kind = kind});
  }
  const std::size_t reshard = broken.schedule.ranks[0].order.size() - 2;
  return {{broken, "T10", fault_place(broken.schedule, {.rank = 0, .at = reshard})}};
}

Entry wait_for(Entry send) {
  send.kind = send.kind == Kind::SendForward ? Kind::WaitSendForward : Kind::WaitSendBackward;
  send.group = Group::Alone;
  return send;
}

// Every rank waits at its end for each of its sends but one.
void wait_for_all_but(Schedule& schedule, std::optional<Position> left_out) {
  for (const Position& send : sends_of(schedule)) {
    const bool out = left_out && left_out->rank == send.rank && left_out->at == send.at;
    auto& order = schedule.ranks[send.rank].order;
    const Entry wait = wait_for(order[send.at]);
    if (!out) order.push_back(wait);
  }
}

// A rank waits a second time for a send, or for one of the last stage's, which sends no output.
std::optional<Broken<Communication>> wait_for_nothing(const Communication& sound,
                                                      std::size_t choice) {
  const auto send = chosen(sends_of(sound.schedule), choice / 2);
  if (!send) return std::nullopt;
  Communication broken = sound;
  wait_for_all_but(broken.schedule, std::nullopt);
  const StageMap map(sound.schedule);
  const StageMap::Place& end = map.home(map.stages() - 1);
  const bool again = choice % 2 == 0;
  const std::size_t rank = again ? send->rank : end.rank.index();
  auto& order = broken.schedule.ranks[rank].order;
  order.push_back(again
                      ? wait_for(order[send->at])
                      : Entry{.chunk = end.chunk, .microbatch = 0, .kind = Kind::WaitSendForward});
  return {{broken, "T11", fault_place(broken.schedule, {.rank = rank, .at = order.size() - 1})}};
}

// A send has no wait, though others have.
std::optional<Broken<Communication>> drop_wait(const Communication& sound, std::size_t choice) {
  const auto sends = sends_of(sound.schedule);
  if (sends.size() < 2) return std::nullopt;
  const Position send = chosen(sends, choice).value();
  Communication broken = sound;
  wait_for_all_but(broken.schedule, send);
  return {{broken, "T12", fault_place(broken.schedule, send)}};
}

// A send and a receive that stand side by side become one group, and their other ends do not.
std::optional<Broken<Communication>> fuse_one_end(const Communication& sound, std::size_t choice) {
  std::vector<Position> pairs;
  for (std::size_t rank = 0; rank < sound.schedule.ranks.size(); ++rank) {
    const auto& order = sound.schedule.ranks[rank].order;
    for (std::size_t at = 0; at + 1 < order.size(); ++at) {
      const Entry& one = order[at];
      const Entry& next = order[at + 1];
      const bool both_ways = (is_send(one.kind) && is_receive(next.kind)) ||
                             (is_receive(one.kind) && is_send(next.kind));
      if (both_ways && one.group == Group::Alone && next.group == Group::Alone)
        pairs.push_back({.rank = rank, .at = at});
    }
  }
  const auto pair = chosen(pairs, choice);
  if (!pair) return std::nullopt;
  Communication broken = sound;
  broken.environment.communicators = Communicators::LazyHybrid;
  auto& order = broken.schedule.ranks[pair->rank].order;
  order[pair->at].group = Group::Opens;
  order[pair->at + 1].group = Group::Continues;
  return {{broken, "T13", fault_place(broken.schedule, *pair)}};
}

// The receive of a send's channel back, if both ranks use the channel of the send first.
std::optional<Position> first_receive_back(const Schedule& schedule, Position send) {
  const Position there = receive_of(schedule, send);
  std::optional<Position> back;
  for (const Position& other : sends_of(schedule)) {
    const Position here = receive_of(schedule, other);
    if (other.rank == send.rank && here.rank == there.rank && other.at < send.at)
      return std::nullopt;
    if (other.rank != there.rank || here.rank != send.rank) continue;
    if (here.at < send.at || other.at < there.at) return std::nullopt;
    if (!back || here.at < back->at) back = here;
  }
  return back;
}

// A rank posts its first receive from another one before its first send there, so that it makes the
// communicators of the two directions in the other order than that rank; the finding is a cycle
// that goes through the receive.
std::optional<Broken<Communication>> use_crosswise(const Communication& sound, std::size_t choice) {
  std::vector<Position> found;
  for (const Position& send : sends_of(sound.schedule)) {
    if (first_receive_back(sound.schedule, send)) found.push_back(send);
  }
  const auto send = chosen(found, choice);
  if (!send) return std::nullopt;
  Communication broken = sound;
  broken.environment.communicators = Communicators::PerEdge;
  broken.environment.comm_init = CommInit::Lazy;
  const Position receive = first_receive_back(sound.schedule, *send).value();
  const Entry moved = take_out(broken.schedule, receive);
  const Position place = put_before(broken.schedule, *send, moved);
  return {{broken, "T14", fault_place(broken.schedule, place)}};
}

constexpr std::array kCommunicationFaults{
    CommunicationFault{"two-forwards", {"R01"}, two_forwards},
    CommunicationFault{"swapped-microbatches", {"R01"}, swapped_microbatches},
    CommunicationFault{"overlapping-plain-loop", {"R01"}, overlapping_plain_loop},
    CommunicationFault{"beside-own-forward", {"R01"}, beside_own_forward},
    CommunicationFault{"flush-without-warmup", {"R02"}, flush_without_warmup},
    CommunicationFault{"repeat-transfer", {"T01"}, repeat_transfer},
    CommunicationFault{"send-beyond", {"T02"}, send_beyond},
    CommunicationFault{"drop-receive", {"T03"}, drop_receive},
    CommunicationFault{"drop-send", {"T04"}, drop_send},
    CommunicationFault{"drop-both-ends", {"T05"}, drop_both_ends},
    CommunicationFault{"send-early", {"T06"}, send_early},
    CommunicationFault{"receive-late", {"T07"}, receive_late},
    CommunicationFault{"swap-receives", {"T08"}, swap_receives},
    CommunicationFault{"receive-before-send", {"T09"}, receive_before_send},
    CommunicationFault{"send-to-itself", {"T02"}, send_to_itself},
    CommunicationFault{"crossed-collectives", {"T10"}, crossed_collectives},
    CommunicationFault{"racing-collectives", {"T10"}, racing_collectives},
    CommunicationFault{"wait-for-nothing", {"T11"}, wait_for_nothing},
    CommunicationFault{"drop-wait", {"T12"}, drop_wait},
    CommunicationFault{"fuse-one-end", {"T13"}, fuse_one_end},
    CommunicationFault{"use-crosswise", {"T14"}, use_crosswise},
};

}  // namespace

std::span<const CommunicationFault> communication_faults() {
  return kCommunicationFaults;
}

}  // namespace capo::testing
