// A receive comes behind the computation that reads what it receives.

#include "testing/edits/transfers.h"
#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenCommunication receive_late(const Communication& sound, std::size_t choice) {
  const auto send = chosen(sends_of(sound.schedule), choice);
  if (!send) return std::nullopt;
  Communication broken = sound;
  const EntryPlace receive = receive_of(broken.schedule, *send);
  EntryPlace reader = reader_of(broken.schedule, receive);
  const Entry moved = take_out(broken.schedule, receive);
  --reader.at;  // which comes behind the receive
  const EntryPlace place = put_behind(broken.schedule, reader, moved);
  return {{broken, "T07", fault_place(broken.schedule, place)}};
}

}  // namespace capo::testing::faults
