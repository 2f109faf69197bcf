#include "testing/representable.h"

#include "core/base/index.h"

#include <algorithm>
#include <cstdint>

namespace capo::testing {

namespace {

using Reason = std::optional<std::string_view>;

Reason fault_of_entries(const std::vector<Entry>& order, const RankOrder& rank, Naming naming,
                        std::int64_t limit) {
  bool in_composite = false;
  for (const Entry& entry : order) {
    if (entry.chunk > limit || entry.microbatch > limit) return "a number above the limit";
    if (entry.group == Group::Continues && !in_composite) return "a composite that nothing opens";
    in_composite = entry.group != Group::Alone;
    if (entry.kind == Kind::Idle) {
      if (in_composite) return "an idle slot in a composite";
      if (entry.chunk != 0 || entry.microbatch != kNoMicrobatch)
        return "an idle slot with a chunk or microbatch";
      continue;
    }
    if (entry.chunk < 1) return "a chunk below 1";
    if (!has_microbatch(entry.kind)) {
      if (entry.microbatch != kNoMicrobatch) return "a microbatch on an action of a whole stage";
    } else if (naming == Naming::Named && entry.microbatch < 0) {
      return "a nameless microbatch among named ones";
    }
  }
  if (naming == Naming::Named) return std::nullopt;
  const bool split = std::any_of(order.begin(), order.end(), [](const Entry& entry) {
    return entry.kind == Kind::BackwardInput;
  });
  if (split) return "an input gradient among counted microbatches";
  std::vector<Entry> counted = order;
  for (Entry& entry : counted) entry.microbatch = kNoMicrobatch;
  number_microbatches(counted, rank.chunks);
  const bool same =
      std::equal(order.begin(), order.end(), counted.begin(),
                 [](const Entry& a, const Entry& b) { return a.action() == b.action(); });
  return same ? Reason() : "counted microbatches that are not in turn";
}

Reason fault_of_resets(const RankOrder& rank, std::int64_t limit) {
  const std::vector<Entry>& order = rank.replayed();
  std::uint32_t before = 0;
  for (const Reset& reset : rank.resets) {
    if (reset.behind < before || reset.behind > order.size()) return "resets out of their order";
    before = reset.behind;
    if (before < order.size() && order[before].group == Group::Continues)
      return "a reset in a composite";
    if (reset.chunk < 0 || reset.chunk > limit || reset.microbatch > limit)
      return "a reset of a number below 0 or above the limit";
    if (reset.chunk == Reset::kAllChunks && reset.microbatch != kNoMicrobatch)
      return "a reset of one microbatch of all chunks";
  }
  return std::nullopt;
}

std::int32_t usable_chunks(const std::vector<Entry>& order) {
  std::int32_t largest = 0;
  for (const Entry& entry : order) {
    if (as_index(std::int32_t{entry.chunk}) <= order.size())
      largest = std::max<std::int32_t>(largest, entry.chunk);
  }
  return largest;
}

Reason fault_of_rank(const RankOrder& rank, const Schedule& schedule, std::int64_t limit) {
  if (rank.chunks < 0) return "a negative number of chunks";
  if (const auto reason = fault_of_entries(rank.order, rank, schedule.naming, limit)) return reason;
  if (rank.replay) {
    if (const auto reason = fault_of_entries(*rank.replay, rank, schedule.naming, limit))
      return reason;
  }
  if (const auto reason = fault_of_resets(rank, limit)) return reason;
  const bool stated = rank.chunks_declared || schedule.topology == Topology::Custom;
  if (!stated && rank.chunks != usable_chunks(rank.order))
    return "undeclared chunks that do not occur";
  const Layers& layers = rank.layers;
  const bool has_values = layers.form == Layers::Form::List || layers.form == Layers::Form::Count;
  if (has_values != !layers.values.empty()) return "layers without their numbers";
  if (layers.form == Layers::Form::Count && layers.values.size() != 1)
    return "several layer counts for all chunks";
  if (layers.form == Layers::Form::List && !stated)
    return "a list of layers that declares no chunks";
  for (const std::int64_t count : layers.values) {
    if (count < 0 || count > limit) return "a negative or very large number of layers";
  }
  if (rank.delay && rank.delay->size() != as_index(rank.chunks)) {
    return "delays declared for more or fewer chunks than there are";
  }
  const bool mixed = rank.delay && std::find(rank.delay->begin(), rank.delay->end(),
                                             Delay::Mixed) != rank.delay->end();
  if (mixed && schedule.naming == Naming::Counted) {
    return "a mixed chunk where microbatches are counted";
  }
  if (schedule.topology == Topology::Custom && rank.stages.size() != as_index(rank.chunks)) {
    return "not one stage per chunk";
  }
  return std::nullopt;
}

bool any_named(const Schedule& schedule) {
  const auto named = [](const Entry& entry) { return has_microbatch(entry.kind); };
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [&](const RankOrder& rank) {
    return std::any_of(rank.order.begin(), rank.order.end(), named) ||
           (rank.replay && std::any_of(rank.replay->begin(), rank.replay->end(), named));
  });
}

}  // namespace

std::optional<std::string_view> unrepresentable(const Schedule& schedule, const Limits& limits) {
  const auto limit = static_cast<std::int64_t>(limits.counts);
  if (schedule.ranks.empty()) return "no rank";
  if (schedule.ranks.size() > limits.ranks) return "too many ranks";
  if (schedule.naming == Naming::Named && !any_named(schedule))
    return "named microbatches where there are none";
  if (schedule.microbatches.value_or(1) < 1 || schedule.microbatches.value_or(1) > limit)
    return "microbatches";
  if (schedule.stages.value_or(1) < 1 || schedule.stages.value_or(1) > limit) return "stages";
  std::int64_t chunks = 0;
  for (const RankOrder& rank : schedule.ranks) {
    if (const auto reason = fault_of_rank(rank, schedule, limit)) return reason;
    chunks += rank.chunks;
    for (const std::int32_t stage : rank.stages) {
      if (stage < 0 || stage > limit) return "a negative or very large stage";
    }
  }
  if (chunks > limit) return "too many chunks";
  if (schedule.topology == Topology::Custom) return std::nullopt;
  Schedule placed = schedule;
  for (RankOrder& rank : placed.ranks) rank.stages.clear();
  place_stages(placed);
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    if (placed.ranks[r].stages != schedule.ranks[r].stages)
      return "stages that the topology does not give";
  }
  return std::nullopt;
}

}  // namespace capo::testing
