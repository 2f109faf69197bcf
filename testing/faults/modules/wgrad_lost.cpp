// A delayed weight gradient is no longer fused.

#include "testing/faults/faults.h"
#include "testing/faults/modules.h"

namespace capo::testing::faults {

BrokenModules wgrad_lost(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice,
                     {.rule = "G01", .of = Delayed::Yes, .shown_at = Kind::BackwardWeight},
                     [](Module& module) { module.flags.fuse_wgrad_accumulation = false; });
}

}  // namespace capo::testing::faults
