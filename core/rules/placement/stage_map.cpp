#include "core/rules/placement/stage_map.h"

namespace capo::rules {

std::map<std::int32_t, std::vector<Holder>> holders_by_stage(const Context& context) {
  const Schedule& schedule = context.schedule();
  std::map<std::int32_t, std::vector<Holder>> holders;
  if (schedule.topology == Topology::Independent) return holders;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const auto& stages = schedule.ranks[r].stages;
    for (std::size_t c = 0; c < stages.size(); ++c) {
      if (schedule.stages && stages[c] >= *schedule.stages) continue;
      holders[stages[c]].push_back(
          {.rank = static_cast<std::int32_t>(r), .chunk = static_cast<std::int32_t>(c) + 1});
    }
  }
  return holders;
}

}  // namespace capo::rules
