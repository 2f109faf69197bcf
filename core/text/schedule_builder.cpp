#include "core/text/schedule_builder.h"

#include "core/base/index.h"
#include "core/base/plural.h"
#include "core/text/action_token.h"
#include "core/text/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace capo {

namespace {

// A reset may name its microbatch where actions leave theirs to be counted.
std::optional<Refusal> add_reset(ReadOrder& order, const ResetToken& token, Span span,
                                 Group group) {
  if (group != Group::Alone) {
    return malformed(span, "a reset is no action, and runs together with none",
                     "write it before or behind the composite");
  }
  if (token.chunk == std::uint64_t{0}) return malformed(span, "chunks are counted from 1");
  Reset reset{.behind = static_cast<std::uint32_t>(order.entries.size()), .span = span};
  if (token.chunk) reset.chunk = static_cast<std::int32_t>(*token.chunk);
  if (token.microbatch) reset.microbatch = static_cast<std::int32_t>(*token.microbatch);
  order.resets.push_back(reset);
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> ScheduleBuilder::add_token(ReadOrder& order, std::string_view token,
                                                  Span span, Group group) {
  if (++entries_ > limits_.entries) return too_many_entries(span, limits_);
  const std::optional<ResetToken> reset = read_reset_token(token);
  if (!reset) return add_action(order.entries, token, span, group);
  for (const auto& number : {reset->chunk, reset->microbatch}) {
    if (auto refusal = refuse_large(number.value_or(0), token, span)) return refusal;
  }
  return add_reset(order, *reset, span, group);
}

std::optional<Refusal> ScheduleBuilder::refuse_large(std::uint64_t number, std::string_view token,
                                                     Span span) const {
  if (number <= limits_.counts) return std::nullopt;
  return over_limit(span, fmt::format("{} has a number above {}", shown(token), limits_.counts),
                    "--max-count");
}

std::optional<Refusal> ScheduleBuilder::add_action(std::vector<Entry>& order,
                                                   std::string_view token, Span span, Group group) {
  const std::optional<ActionToken> action = read_action_token(token);
  if (!action || (action->kind == Kind::Idle && group != Group::Alone)) {
    return malformed(span, fmt::format("{} is no action", shown(token)),
                     "an action is a kind, a chunk and, if named, a microbatch: F1, B2.0, W1");
  }
  for (const std::uint64_t number : {action->chunk, action->microbatch.value_or(0)}) {
    if (auto refusal = refuse_large(number, token, span)) return refusal;
  }
  if (action->kind != Kind::Idle && action->chunk == 0) {
    return malformed(span, "chunks are counted from 1");
  }
  const bool named = action->microbatch.has_value();
  if (has_microbatch(action->kind)) {
    if (action->kind == Kind::BackwardInput && !named) return unnamed_input(span);
    if (auto refusal = check_naming(named, span)) return refusal;
  }
  order.push_back(
      {.chunk = static_cast<std::int32_t>(action->chunk),
       .microbatch =
           named ? MicrobatchId(static_cast<std::int32_t>(*action->microbatch)) : kNoMicrobatch,
       .offset = span.offset,
       .length = static_cast<std::uint16_t>(std::min<std::uint32_t>(span.length, 0xffff)),
       .kind = action->kind,
       .group = group});
  return std::nullopt;
}

std::optional<Refusal> ScheduleBuilder::check_naming(bool named, Span span) {
  const Naming naming = named ? Naming::Named : Naming::Counted;
  if (!naming_) {
    naming_ = naming;
    first_action_ = span;
  }
  if (naming == *naming_) return std::nullopt;
  Refusal refusal =
      malformed(span,
                named ? "this action names its microbatch, those before it do not"
                      : "this action does not name its microbatch, those before it do",
                "name the microbatch of every action, or of none");
  refusal.finding.labels.push_back({first_action_, "the first action is here"});
  return refusal;
}

std::optional<Refusal> ScheduleBuilder::add_rank(Span where, RankFacts facts,
                                                 const RankFacts& shared, ReadOrder order,
                                                 std::optional<ReadOrder> replay) {
  if (replay && !order.resets.empty()) {
    return malformed(order.resets.front().span,
                     "graphs are reset between replays, and this order is only captured",
                     "write the reset into the replay order");
  }
  if (!facts.chunks) facts.chunks = shared.chunks;
  if (!facts.layers) facts.layers = shared.layers;
  if (!facts.delayed) facts.delayed = shared.delayed;
  if (!facts.mixed) facts.mixed = shared.mixed;
  if (!facts.model_chunks) facts.model_chunks = shared.model_chunks;

  RankOrder rank{.order = std::move(order.entries),
                 .resets = std::move(replay ? replay->resets : order.resets)};
  if (replay) rank.replay = std::move(replay->entries);
  if (facts.layers) rank.layers = *facts.layers;
  if (auto refusal = settle_chunks(rank, where, facts)) return refusal;
  if (auto refusal = settle_stages(rank, where, facts)) return refusal;
  if (auto refusal = settle_model_chunks(rank, where, facts)) return refusal;
  if (auto refusal = settle_delay(rank, facts)) return refusal;
  schedule_.ranks.push_back(std::move(rank));
  return std::nullopt;
}

std::optional<Refusal> ScheduleBuilder::settle_chunks(RankOrder& rank, Span where,
                                                      const RankFacts& facts) {
  declared_chunks_ += static_cast<std::uint64_t>(facts.chunks.value_or(0));
  if (declared_chunks_ > limits_.counts) {
    return over_limit(where, fmt::format("the ranks declare more than {} chunks", limits_.counts),
                      "--max-count");
  }
  rank.chunks_declared = true;
  if (facts.chunks) {
    rank.chunks = *facts.chunks;
  } else if (facts.stages) {
    rank.chunks = static_cast<std::int32_t>(facts.stages->size());
  } else if (rank.layers.form == Layers::Form::List) {
    rank.chunks = static_cast<std::int32_t>(rank.layers.values.size());
  } else {
    // The largest id that the order is long enough to use.
    rank.chunks_declared = false;
    for (const Entry& entry : rank.order) {
      if (as_index(std::int32_t{entry.chunk}) <= rank.order.size()) {
        rank.chunks = std::max<std::int32_t>(rank.chunks, entry.chunk);
      }
    }
  }
  return std::nullopt;
}

std::optional<Refusal> ScheduleBuilder::settle_stages(RankOrder& rank, Span where,
                                                      const RankFacts& facts) const {
  const bool custom = schedule_.topology == Topology::Custom;
  if (facts.stages) {
    if (!custom) return malformed(where, "`stages` of a rank needs the placement `custom`");
    rank.stages = *facts.stages;
  }
  if (!custom || rank.stages.size() == as_index(rank.chunks)) return std::nullopt;
  return malformed(where,
                   fmt::format("rank {} has {} chunks and the stages of {}", schedule_.ranks.size(),
                               rank.chunks, rank.stages.size()),
                   "under the placement `custom` every rank lists the stage of each of its chunks");
}

std::optional<Refusal> ScheduleBuilder::settle_model_chunks(RankOrder& rank, Span where,
                                                            const RankFacts& facts) {
  if (!facts.model_chunks) return std::nullopt;
  const auto& layers = *facts.model_chunks;
  const auto sum = std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
  if (sum != rank.chunks) {
    return malformed(
        where,
        fmt::format("the chunks of the model have {} layers, and the rank has {}", sum,
                    counted(as_index(rank.chunks), "chunk")),
        "`model-chunks` lists how many chunks of the order, each of them a layer, make "
        "each chunk of the model");
  }
  rank.model_chunks = layers;
  return std::nullopt;
}

std::optional<Refusal> ScheduleBuilder::settle_delay(RankOrder& rank, const RankFacts& facts) {
  if (!facts.delayed && !facts.mixed) return std::nullopt;
  rank.delay.emplace(as_index(rank.chunks), Delay::Never);
  for (const auto& [mentions, delay] :
       {std::pair(&facts.delayed, Delay::Always), std::pair(&facts.mixed, Delay::Mixed)}) {
    for (const ChunkMention& mention : mentions->value_or(std::vector<ChunkMention>{})) {
      if (delay == Delay::Mixed && !mixed_at_) mixed_at_ = mention.span;
      if (mention.chunk == ChunkMention::kAll) {
        std::fill(rank.delay->begin(), rank.delay->end(), delay);
      } else if (mention.chunk > rank.chunks) {
        return malformed(
            mention.span,
            fmt::format("chunk {} is said to split its backwards, but the rank has {}",
                        mention.chunk,
                        rank.chunks == 1 ? "1 chunk" : fmt::format("{} chunks", rank.chunks)));
      } else {
        (*rank.delay)[mention.chunk.index()] = delay;
      }
    }
  }
  return std::nullopt;
}

std::optional<Refusal> ScheduleBuilder::refuse_two_kinds_of_transfers() const {
  if (!schedule_.p2p) return std::nullopt;
  for (const RankOrder& rank : schedule_.ranks) {
    const auto transfer = std::find_if(rank.order.begin(), rank.order.end(),
                                       [](const Entry& entry) { return is_transfer(entry.kind); });
    if (transfer == rank.order.end()) continue;
    return malformed(transfer->span(),
                     "the order writes a transfer, and `p2p` says that Megatron calls them all",
                     "leave `p2p` out, or every transfer");
  }
  return std::nullopt;
}

Read<Schedule> ScheduleBuilder::finish() && {
  schedule_.naming = naming_.value_or(Naming::Counted);
  if (schedule_.naming == Naming::Counted) {
    if (mixed_at_) {
      return malformed(*mixed_at_, "a mixed chunk needs named microbatches",
                       "name the microbatch of every action: counting cannot tell which are split");
    }
    for (RankOrder& rank : schedule_.ranks) {
      number_microbatches(rank.order, rank.chunks);
      if (rank.replay) number_microbatches(*rank.replay, rank.chunks);
    }
  }
  if (auto refusal = refuse_two_kinds_of_transfers()) return std::move(*refusal);
  place_stages(schedule_);
  if (auto refusal = refuse_size(schedule_, limits_)) return std::move(*refusal);
  return std::move(schedule_);
}

}  // namespace capo
