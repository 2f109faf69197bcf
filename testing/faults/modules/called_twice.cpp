// A module that delays is called twice.

#include "testing/faults/faults.h"
#include "testing/faults/modules.h"

namespace capo::testing::faults {

BrokenModules called_twice(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice,
                     {.rule = "C04", .of = Delayed::Yes, .shown_at = Kind::BackwardWeight},
                     [](Module& module) { module.calls = 2; });
}

}  // namespace capo::testing::faults
