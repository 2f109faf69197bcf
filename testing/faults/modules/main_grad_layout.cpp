// main_grad of a single weight is transposed.

#include "testing/faults/faults.h"
#include "testing/faults/modules.h"

namespace capo::testing::faults {

BrokenModules main_grad_layout(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, {.rule = "G07", .shown_at = Kind::Backward},
                     [](Module& module) {
                       module.kind = ModuleKind::GroupedLinearOp;
                       module.flags.single_weight = true;
                       module.main_grad = MainGrad{.shape = {2, 3, 5}, .strides = {15, 1, 3}};
                     });
}

}  // namespace capo::testing::faults
