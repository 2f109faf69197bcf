// Two layers of a stage share a weight, and PyTorch takes its backward apart.

#include "testing/faults/faults.h"
#include "testing/faults/modules.h"

#include <algorithm>

namespace capo::testing::faults {

namespace {

// Whether its table has the same actions in the same places, and numbers the chunks of each rank as
// the schedule does: by their stages. Chunks that are not wired would be put into another order.
bool same_as_table(const Schedule& schedule) {
  return schedule.topology != Topology::Independent &&
         std::all_of(schedule.ranks.begin(), schedule.ranks.end(), [](const RankOrder& rank) {
           return std::is_sorted(rank.stages.begin(), rank.stages.end());
         });
}

}  // namespace

BrokenModules shared_weight(const Declared& sound, std::size_t choice) {
  if (!same_as_table(sound.schedule)) return std::nullopt;
  auto broken = with_module(sound, choice,
                            {.rule = "G06", .of = Delayed::Yes, .shown_at = Kind::BackwardWeight},
                            [](Module& module) {
                              module.flags.fuse_wgrad_accumulation = false;
                              module.flags.shared_weight = true;
                            });
  if (!broken) return std::nullopt;
  ModuleTable& table = broken->subject.options.modules;
  const auto faulty = static_cast<std::int32_t>(table.list.size()) - 1;
  for (auto& rank : table.layers) {
    for (auto& layers : rank) {
      if (layers.front() == faulty) layers.push_back(faulty);
    }
  }
  broken->subject.options.plan = {};
  broken->subject.table = true;
  return broken;
}

}  // namespace capo::testing::faults
