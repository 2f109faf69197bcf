// The same with grouped products, which have one workspace.

#include <capo/testing/faults/faults.h>
#include <capo/testing/faults/plan.h>

namespace capo::testing::faults {

BrokenPlan grouped_weight_stream(const Declared& sound, std::size_t choice) {
  auto broken = weight_stream(sound, choice);
  if (!broken) return std::nullopt;
  for (Module& module : broken->subject.options.modules.list) {
    module.kind = ModuleKind::GroupedLinear;
    module.shape.groups = 4;
    module.splits = Splits::Device;
  }
  broken->rule = "E02";
  return broken;
}

}  // namespace capo::testing::faults
