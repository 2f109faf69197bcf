// A returned weight gradient is not cloned.

#include "testing/faults/faults.h"
#include "testing/faults/modules.h"

namespace capo::testing::faults {

BrokenModules returned_gradient_alias(const Declared& sound, std::size_t choice) {
  return with_module(
      sound, choice,
      {.rule = "G10", .of = Delayed::No, .shown_at = Kind::Backward, .microbatches = 2},
      [](Module& module) {
        module.flags.fuse_wgrad_accumulation = false;
        module.flags.clone_param_grads = false;
      });
}

}  // namespace capo::testing::faults
