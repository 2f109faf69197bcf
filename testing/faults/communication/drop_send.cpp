// What is received is not sent; the finding is at the receive.

#include "testing/edits/transfers.h"
#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenCommunication drop_send(const Communication& sound, std::size_t choice) {
  const auto send = chosen(sends_of(sound.schedule), choice);
  if (!send) return std::nullopt;
  Communication broken = sound;
  const EntryPlace receive = receive_of(broken.schedule, *send);
  take_out(broken.schedule, *send);
  return {{broken, "T04", fault_place(broken.schedule, receive)}};
}

}  // namespace capo::testing::faults
