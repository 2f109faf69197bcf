// A grouped-linear has more groups than a product takes.

#include "testing/faults/faults.h"
#include "testing/faults/modules.h"

namespace capo::testing::faults {

BrokenModules too_many_groups(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, {.rule = "C05"}, [](Module& module) {
    module.kind = ModuleKind::GroupedLinear;
    module.splits = Splits::Device;
    module.shape.groups = 65;
  });
}

}  // namespace capo::testing::faults
