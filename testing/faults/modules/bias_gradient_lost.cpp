// A module that delays its weight gradient gets a bias.

#include "testing/faults/faults.h"
#include "testing/faults/modules.h"

namespace capo::testing::faults {

BrokenModules bias_gradient_lost(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice,
                     {.rule = "G02", .of = Delayed::Yes, .shown_at = Kind::BackwardWeight},
                     [](Module& module) { module.flags.bias = true; });
}

}  // namespace capo::testing::faults
