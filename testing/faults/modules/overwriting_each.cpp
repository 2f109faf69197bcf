// Every weight gradient of several microbatches overwrites main_grad.

#include "testing/faults/faults.h"
#include "testing/faults/modules.h"

namespace capo::testing::faults {

BrokenModules overwriting_each(const Declared& sound, std::size_t choice) {
  return with_module(
      sound, choice,
      {.rule = "G12", .of = Delayed::Yes, .shown_at = Kind::BackwardWeight, .microbatches = 2},
      [](Module& module) { module.flags.overwrite_main_grad = true; });
}

}  // namespace capo::testing::faults
