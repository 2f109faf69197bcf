// The same with grouped products of any kind, which have one workspace.

#include "testing/faults/faults.h"
#include "testing/faults/plan.h"

#include <array>

namespace capo::testing::faults {

BrokenPlan grouped_weight_stream(const Declared& sound, std::size_t choice) {
  constexpr std::array kKinds{ModuleKind::GroupedLinear, ModuleKind::GroupedLinearOp,
                              ModuleKind::GroupedMlp};
  auto broken = weight_stream(sound, choice);
  if (!broken) return std::nullopt;
  for (Module& module : broken->subject.options.modules.list) {
    module.kind = kKinds[choice % kKinds.size()];
    module.shape.groups = 4;
    module.splits = Splits::Device;
  }
  broken->rule = "E02";
  return broken;
}

}  // namespace capo::testing::faults
