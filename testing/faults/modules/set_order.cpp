// A transformer-layer makes two buckets ready.

#include "testing/faults/faults.h"
#include "testing/faults/modules.h"

namespace capo::testing::faults {

BrokenModules set_order(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice,
                     {.rule = "G09", .of = Delayed::Yes, .shown_at = Kind::BackwardWeight},
                     [](Module& module) {
                       module.kind = ModuleKind::TransformerLayer;
                       module.flags.wgrad_hooks = true;
                       module.grad_buckets = 2;
                     });
}

}  // namespace capo::testing::faults
