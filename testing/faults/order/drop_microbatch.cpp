// A chunk runs nothing of the last microbatch, which others run. No entry is left to point at.

#include "testing/edits/entries.h"
#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenOrder drop_microbatch(const Schedule& sound, std::size_t choice) {
  const std::int32_t last = sound.microbatches.value_or(0) - 1;
  if (last < 1) return std::nullopt;
  const std::size_t rank = choice % sound.ranks.size();
  Schedule schedule = sound;
  RankOrder& order = schedule.ranks[rank];
  for (Entry& entry : order.order) entry.group = Group::Alone;
  const auto chunk = static_cast<std::int32_t>(choice) % order.chunks + 1;
  std::erase_if(order.order, [&](const Entry& entry) {
    return entry.chunk == chunk && entry.microbatch == last;
  });
  return {{schedule, "S21", std::nullopt}};
}

}  // namespace capo::testing::faults
