// Work of a module does not come back from another stream.

#include "testing/faults/faults.h"
#include "testing/faults/modules.h"

namespace capo::testing::faults {

BrokenModules unjoined_stream(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, {.rule = "C03"},
                     [](Module& module) { module.flags.unjoined_stream = true; });
}

}  // namespace capo::testing::faults
