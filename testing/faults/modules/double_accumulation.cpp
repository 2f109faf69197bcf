// ops.BasicLinear is asked to overwrite main_grad.

#include "testing/faults/faults.h"
#include "testing/faults/modules.h"

namespace capo::testing::faults {

BrokenModules double_accumulation(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, {.rule = "G05", .of = Delayed::No, .shown_at = Kind::Backward},
                     [](Module& module) {
                       module.kind = ModuleKind::BasicLinearOp;
                       module.flags.overwrite_main_grad = true;
                     });
}

}  // namespace capo::testing::faults
