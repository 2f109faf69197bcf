// Between the first backward and the last forward a forward comes before the backward ahead of it,
// so that two forwards follow each other.

#include "testing/edits/transfers.h"
#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenCommunication two_forwards(const Communication& sound, std::size_t choice) {
  if (!sound.environment.p2p) return std::nullopt;
  std::vector<EntryPlace> found;
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
  const EntryPlace ahead =
      put_before(broken.schedule, {.rank = place->rank, .at = place->at - 1}, moved);
  return {{broken, "R01", fault_place(broken.schedule, ahead)}};
}

}  // namespace capo::testing::faults
