// The input of a fused linear needs no gradient.

#include "testing/faults/faults.h"
#include "testing/faults/modules.h"

namespace capo::testing::faults {

BrokenModules no_gradient(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, {.rule = "C06", .shown_at = Kind::Backward},
                     [](Module& module) { module.flags.input_requires_grad = false; });
}

}  // namespace capo::testing::faults
