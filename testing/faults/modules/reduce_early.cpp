// A reduction comes before the last gradient of its chunk.

#include "testing/edits/transfers.h"
#include "testing/faults/faults.h"
#include "testing/faults/modules.h"

namespace capo::testing::faults {

BrokenModules reduce_early(const Declared& sound, std::size_t choice) {
  const auto reduction = chosen(reductions(sound.schedule), choice);
  if (!reduction) return std::nullopt;
  Declared broken = sound;
  const Entry moved = take_out(broken.schedule, *reduction);
  const EntryPlace last = last_gradient(broken.schedule, reduction->rank, moved.chunk);
  const EntryPlace place = put_before(broken.schedule, last, moved);
  return {{broken, "G13", fault_place(broken.schedule, place)}};
}

}  // namespace capo::testing::faults
