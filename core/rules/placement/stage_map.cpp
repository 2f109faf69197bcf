#include <capo/core/rules/placement/stage_map.h>

#include <algorithm>

namespace capo::rules {

std::vector<std::vector<Holder>> holders_by_stage(const Context& context) {
  const Schedule& schedule = context.schedule();
  std::vector<std::vector<Holder>> holders;
  if (schedule.topology == Topology::Independent) return holders;
  const std::size_t declared = static_cast<std::size_t>(schedule.stages.value_or(0));
  holders.resize(declared);
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const auto& stages = schedule.ranks[r].stages;
    for (std::size_t c = 0; c < stages.size(); ++c) {
      const auto stage = static_cast<std::size_t>(stages[c]);
      // A stage beyond the declared number is stage_unknown's.
      if (schedule.stages && stage >= declared) continue;
      if (stage >= holders.size()) holders.resize(stage + 1);
      holders[stage].push_back(
          {.rank = static_cast<std::int32_t>(r), .chunk = static_cast<std::int32_t>(c) + 1});
    }
  }
  return holders;
}

}  // namespace capo::rules
