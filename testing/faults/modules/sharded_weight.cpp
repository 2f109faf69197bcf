// The weight of a module that delays is distributed.

#include "testing/faults/faults.h"
#include "testing/faults/modules.h"

namespace capo::testing::faults {

BrokenModules sharded_weight(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice,
                     {.rule = "G11", .of = Delayed::Yes, .shown_at = Kind::BackwardWeight},
                     [](Module& module) { module.flags.sharded_weight = true; });
}

}  // namespace capo::testing::faults
