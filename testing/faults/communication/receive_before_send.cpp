// A rank that sends and then receives does it the other way round, and so does not send while the
// other one waits; the finding is a cycle that goes through the receive. Transfers queue up by
// pairs at least: where each direction has a queue of its own the two do not meet.

#include "testing/edits/transfers.h"
#include "testing/faults/faults.h"

#include "core/graph/lowered.h"
#include "core/graph/stage_map.h"

#include <utility>

namespace capo::testing::faults {

BrokenCommunication receive_before_send(const Communication& sound, std::size_t choice) {
  const auto sends = sends_of(sound.schedule);
  std::vector<EntryPlace> found;
  for (const EntryPlace& send : sends) {
    const auto& order = sound.schedule.ranks[send.rank].order;
    const std::size_t next = send.at + 1;
    if (next >= order.size() || !is_receive(order[next].kind)) continue;
    const std::size_t to = receive_of(sound.schedule, send).rank;
    for (const EntryPlace& other : sends) {
      const EntryPlace arrives = receive_of(sound.schedule, other);
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

}  // namespace capo::testing::faults
