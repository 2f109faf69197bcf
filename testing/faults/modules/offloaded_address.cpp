// Tensors of a module are offloaded, whether its input needs a gradient or not.

#include "testing/faults/faults.h"
#include "testing/faults/modules.h"

namespace capo::testing::faults {

BrokenModules offloaded_address(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, {.rule = "C07", .shown_at = Kind::Backward},
                     [choice](Module& module) {
                       module.flags.offloaded = true;
                       module.flags.input_requires_grad = choice % 2 == 0;
                     });
}

}  // namespace capo::testing::faults
