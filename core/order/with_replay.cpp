#include <capo/core/order/with_replay.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace capo {

Result<Input, std::string> with_replay(Input capture, const Input& replay) {
  auto& ranks = capture.schedule.ranks;
  const auto& replayed = replay.schedule.ranks;
  if (ranks.size() != replayed.size()) {
    return fmt::format("{} has {} ranks, {} has {}", capture.source.name, ranks.size(),
                       replay.source.name, replayed.size());
  }
  const auto replays = [](const RankOrder& rank) { return rank.replay.has_value(); };
  if (std::any_of(ranks.begin(), ranks.end(), replays)) {
    return fmt::format("{} has a replay order of its own", capture.source.name);
  }
  if (std::any_of(replayed.begin(), replayed.end(), replays)) {
    return fmt::format("{} has a replay order of its own; which of its two is meant?",
                       replay.source.name);
  }
  if (capture.source.text.size() + replay.source.text.size() >=
      std::numeric_limits<std::uint32_t>::max()) {
    return std::string("the two texts together are too long");
  }
  const auto shift = static_cast<std::uint32_t>(capture.source.append(replay.source));
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    ranks[r].replay = replayed[r].order;
    for (Entry& entry : *ranks[r].replay) entry.offset += shift;
    if (!ranks[r].chunks_declared) ranks[r].chunks = std::max(ranks[r].chunks, replayed[r].chunks);
  }
  if (replay.schedule.naming == Naming::Named) capture.schedule.naming = Naming::Named;
  if (!capture.schedule.microbatches) capture.schedule.microbatches = replay.schedule.microbatches;
  return capture;
}

}  // namespace capo
