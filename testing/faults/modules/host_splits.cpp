// The splits of a grouped-linear move to the CPU.

#include <capo/testing/faults/faults.h>
#include <capo/testing/faults/modules.h>

namespace capo::testing::faults {

BrokenModules host_splits(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, {.rule = "C01"}, [](Module& module) {
    module.kind = ModuleKind::GroupedLinear;
    module.splits = Splits::Host;
  });
}

}  // namespace capo::testing::faults
