// A send comes before what it sends is made.

#include "testing/edits/transfers.h"
#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenCommunication send_early(const Communication& sound, std::size_t choice) {
  const auto send = chosen(sends_of(sound.schedule), choice);
  if (!send) return std::nullopt;
  Communication broken = sound;
  const EntryPlace maker = maker_of(broken.schedule, *send);
  const Entry moved = take_out(broken.schedule, *send);
  const EntryPlace place = put_before(broken.schedule, maker, moved);
  return {{broken, "T06", fault_place(broken.schedule, place)}};
}

}  // namespace capo::testing::faults
