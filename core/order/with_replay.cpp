#include "core/order/declare.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace capo {

namespace {

// Whether the input lists the stages of each rank, as tables do. Then its stage names a chunk, and
// the chunk's number is its place among those that the input runs.
bool lists_stages(const Input& input) {
  return input.schedule.topology == Topology::Custom;
}

// Numbers a chunk of a replayed rank as the capture does, or says that the capture lacks it.
std::optional<std::string> renumber(ChunkId& chunk, std::size_t r, const Input& captured,
                                    const Input& replayed) {
  const std::vector<std::int32_t>& stages = captured.schedule.ranks[r].stages;
  if (chunk < 1) return std::nullopt;
  if (!lists_stages(replayed)) {
    if (chunk.index() < stages.size()) return std::nullopt;
    return fmt::format("{} runs chunk {} on rank {}, which has {} in {}", replayed.source.name,
                       std::int32_t{chunk}, r, stages.size(), captured.source.name);
  }
  const std::int32_t stage = replayed.schedule.ranks[r].stages[chunk.index()];
  const auto at = std::find(stages.begin(), stages.end(), stage);
  if (at == stages.end()) {
    return fmt::format("{} runs stage {} on rank {}, and {} does not", replayed.source.name, stage,
                       r, captured.source.name);
  }
  chunk = static_cast<std::int32_t>(at - stages.begin()) + 1;
  return std::nullopt;
}

std::optional<std::string> renumber(RankOrder& rank, std::size_t r, const Input& captured,
                                    const Input& replayed) {
  std::optional<std::string> why;
  for (Entry& entry : *rank.replay) {
    if (!why) why = renumber(entry.chunk, r, captured, replayed);
  }
  for (Reset& reset : rank.resets) {
    // A chunk that the replayed text itself lacks stays for the rule about such resets.
    const bool known = reset.chunk <= replayed.schedule.ranks[r].chunks;
    if (!why && known) why = renumber(reset.chunk, r, captured, replayed);
  }
  return why;
}

}  // namespace

Result<Input, std::string> with_replay(Input capture, const Input& replay) {
  auto& ranks = capture.schedule.ranks;
  const auto& replayed = replay.schedule.ranks;
  if (ranks.size() != replayed.size()) {
    return fmt::format("{} has {} ranks, {} has {}", capture.source.name, ranks.size(),
                       replay.source.name, replayed.size());
  }
  if (capture.source.text.size() + replay.source.text.size() >=
      std::numeric_limits<std::uint32_t>::max()) {
    return std::string("the two texts together are too long");
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (!ranks[r].replay && !ranks[r].resets.empty()) {
      return fmt::format(
          "rank {} of {} resets graphs, which happens between replays, and the order is only "
          "captured: resets stand in the order that is replayed",
          r, capture.source.name);
    }
    ranks[r].replay = replayed[r].replayed();
    ranks[r].resets = replayed[r].resets;
    if (lists_stages(capture)) {
      if (auto why = renumber(ranks[r], r, capture, replay)) return *why;
    } else if (!ranks[r].chunks_declared) {
      ranks[r].chunks = std::max(ranks[r].chunks, replayed[r].chunks);
    }
  }
  place_stages(capture.schedule);
  const auto shift = static_cast<std::uint32_t>(capture.source.append(replay.source));
  for (RankOrder& rank : ranks) {
    for (Entry& entry : *rank.replay) entry.offset += shift;
    for (Reset& reset : rank.resets) reset.span.offset += shift;
  }
  if (replay.schedule.naming == Naming::Named) capture.schedule.naming = Naming::Named;
  if (!capture.schedule.microbatches) capture.schedule.microbatches = replay.schedule.microbatches;
  return capture;
}

}  // namespace capo
