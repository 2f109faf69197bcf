// The splits of a grouped-linear move to the CPU, or it computes in fp32, which reads them there.

#include "testing/faults/faults.h"
#include "testing/faults/modules.h"

namespace capo::testing::faults {

BrokenModules host_splits(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, {.rule = "C01"}, [choice](Module& module) {
    const bool by_type = choice % 2 == 1;
    module.kind = ModuleKind::GroupedLinear;
    module.splits = by_type ? Splits::Device : Splits::Host;
    if (by_type) module.dtype = DataType::Fp32;
  });
}

}  // namespace capo::testing::faults
