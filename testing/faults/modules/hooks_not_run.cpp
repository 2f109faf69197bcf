// Reductions hang on the hooks of an operation.

#include "testing/faults/faults.h"
#include "testing/faults/modules.h"

namespace capo::testing::faults {

BrokenModules hooks_not_run(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice,
                     {.rule = "G08", .of = Delayed::Yes, .shown_at = Kind::BackwardWeight},
                     [](Module& module) {
                       module.kind = ModuleKind::GroupedLinearOp;
                       module.flags.wgrad_hooks = true;
                     });
}

}  // namespace capo::testing::faults
