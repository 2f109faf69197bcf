// Two receives from one rank have changed places; the finding is at the send that is received
// first.

#include "testing/edits/transfers.h"
#include "testing/faults/faults.h"

#include <utility>
#include <vector>

namespace capo::testing::faults {

BrokenCommunication swap_receives(const Communication& sound, std::size_t choice) {
  const auto sends = sends_of(sound.schedule);
  std::vector<std::pair<EntryPlace, EntryPlace>> pairs;  // sends from one rank to one other
  for (std::size_t i = 0; i < sends.size(); ++i) {
    for (std::size_t k = i + 1; k < sends.size() && sends[k].rank == sends[i].rank; ++k) {
      const std::size_t to = receive_of(sound.schedule, sends[i]).rank;
      if (receive_of(sound.schedule, sends[k]).rank == to) pairs.emplace_back(sends[i], sends[k]);
    }
  }
  const auto pair = chosen(pairs, choice);
  if (!pair) return std::nullopt;
  Communication broken = sound;
  const EntryPlace first = receive_of(broken.schedule, pair->first);
  const EntryPlace second = receive_of(broken.schedule, pair->second);
  auto& order = broken.schedule.ranks[first.rank].order;
  std::swap(order[first.at], order[second.at]);
  return {{broken, "T08", fault_place(broken.schedule, pair->first)}};
}

}  // namespace capo::testing::faults
