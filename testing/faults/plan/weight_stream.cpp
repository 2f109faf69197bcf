// Weight gradients go to a stream of their own, and the next backward does not wait for them.

#include "testing/faults/faults.h"
#include "testing/faults/plan.h"

namespace capo::testing::faults {

BrokenPlan weight_stream(const Declared& sound, std::size_t choice) {
  const auto slip = chosen(weights_before_backwards(sound.schedule), choice);
  if (!slip) return std::nullopt;
  Declared broken = sound;
  broken.options.environment.weight_stream = true;
  const EntryPlace backward = *fellow(sound.schedule, slip->weight, Kind::Backward);
  return {{broken, "E01", fault_place(broken.schedule, backward)}};
}

}  // namespace capo::testing::faults
