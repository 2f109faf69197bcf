// The delayed weight gradient of a grouped-linear is no longer fused.

#include "testing/faults/faults.h"
#include "testing/faults/modules.h"

namespace capo::testing::faults {

BrokenModules gradient_uninitialised(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, {.rule = "G03", .of = Delayed::Yes, .shown_at = Kind::Backward},
                     [](Module& module) {
                       module.kind = ModuleKind::GroupedLinear;
                       module.flags.fuse_wgrad_accumulation = false;
                     });
}

}  // namespace capo::testing::faults
