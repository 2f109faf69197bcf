// A replay runs a weight gradient behind the forward that takes its input over; the capture does
// not.

#include "testing/faults/faults.h"
#include "testing/faults/plan.h"

namespace capo::testing::faults {

BrokenPlan replay_out_of_order(const Declared& sound, std::size_t choice) {
  auto broken = delay_weight_past_forward(sound, choice);
  if (!broken) return std::nullopt;
  const auto rank = static_cast<std::size_t>(broken->place->rank);
  RankOrder& replayed = broken->subject.schedule.ranks[rank];
  const auto& captured = sound.schedule.ranks[rank].order;
  replayed.replay = std::move(replayed.order);
  replayed.order = captured;
  std::size_t parting = 0;
  while (captured[parting].action() == (*replayed.replay)[parting].action()) ++parting;
  broken->rule = "Y01";
  broken->place->index = parting;
  return broken;
}

}  // namespace capo::testing::faults
