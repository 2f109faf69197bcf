// A rank may take no more than the static input of one graph.

#include "testing/faults/faults.h"
#include "testing/faults/plan.h"

namespace capo::testing::faults {

BrokenPlan shrink_budget(const Declared& sound, std::size_t choice) {
  Declared broken = sound;
  const ModuleShape& shape = broken.options.modules.list.front().shape;
  broken.options.plan.budget = 2 * *shape.tokens * *shape.hidden;
  const FaultPlace place{.rank = static_cast<std::int32_t>(choice % sound.schedule.ranks.size())};
  return {{broken, "B08", place}};
}

}  // namespace capo::testing::faults
