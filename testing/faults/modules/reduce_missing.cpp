// One of several chunks is not reduced.

#include "testing/edits/transfers.h"
#include "testing/faults/faults.h"
#include "testing/faults/modules.h"

namespace capo::testing::faults {

BrokenModules reduce_missing(const Declared& sound, std::size_t choice) {
  const auto all = reductions(sound.schedule);
  if (all.size() < 2) return std::nullopt;
  Declared broken = sound;
  const EntryPlace reduction = all[choice % all.size()];
  const Entry gone = take_out(broken.schedule, reduction);
  const EntryPlace last = last_gradient(broken.schedule, reduction.rank, gone.chunk);
  return {{broken, "G14", fault_place(broken.schedule, last)}};
}

}  // namespace capo::testing::faults
