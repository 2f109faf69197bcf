// A module waits for the device.

#include "testing/faults/faults.h"
#include "testing/faults/modules.h"

namespace capo::testing::faults {

BrokenModules synchronises(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, {.rule = "C02"},
                     [](Module& module) { module.flags.synchronises = true; });
}

}  // namespace capo::testing::faults
