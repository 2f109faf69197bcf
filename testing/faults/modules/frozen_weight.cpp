// The weight of a module that delays is frozen.

#include "testing/faults/faults.h"
#include "testing/faults/modules.h"

namespace capo::testing::faults {

BrokenModules frozen_weight(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice,
                     {.rule = "G04", .of = Delayed::Yes, .shown_at = Kind::BackwardWeight},
                     [](Module& module) { module.flags.frozen_weight = true; });
}

}  // namespace capo::testing::faults
