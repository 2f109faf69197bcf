// What is sent is not received; the finding is at the send.

#include "testing/edits/transfers.h"
#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenCommunication drop_receive(const Communication& sound, std::size_t choice) {
  const auto send = chosen(sends_of(sound.schedule), choice);
  if (!send) return std::nullopt;
  Communication broken = sound;
  take_out(broken.schedule, receive_of(broken.schedule, *send));
  return {{broken, "T03", fault_place(broken.schedule, *send)}};
}

}  // namespace capo::testing::faults
