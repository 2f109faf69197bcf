// A message is neither sent nor received, though others are; the finding is at its reader.

#include "testing/edits/transfers.h"
#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenCommunication drop_both_ends(const Communication& sound, std::size_t choice) {
  const auto sends = sends_of(sound.schedule);
  if (sends.size() < 2) return std::nullopt;  // without any, PyTorch's are added
  const EntryPlace send = chosen(sends, choice).value();
  Communication broken = sound;
  const EntryPlace receive = receive_of(broken.schedule, send);
  take_out(broken.schedule, send);
  const EntryPlace reader = reader_of(broken.schedule, receive);
  take_out(broken.schedule, receive);
  // The reader comes behind the receive.
  return {{broken, "T05", fault_place(broken.schedule, {reader.rank, reader.at - 1})}};
}

}  // namespace capo::testing::faults
