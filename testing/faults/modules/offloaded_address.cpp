// Tensors of a module are offloaded.

#include <capo/testing/faults/faults.h>
#include <capo/testing/faults/modules.h>

namespace capo::testing::faults {

BrokenModules offloaded_address(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, {.rule = "C07", .shown_at = Kind::Backward},
                     [](Module& module) { module.flags.offloaded = true; });
}

}  // namespace capo::testing::faults
